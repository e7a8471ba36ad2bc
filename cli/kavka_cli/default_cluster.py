"""The cluster of `kavka up` without a file: its resource is written into the state directory, and read from there
since.

So it is a cluster like any other: its file can be changed and applied, and `kavka down` stops it.
"""

import socket
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable
from pathlib import Path
from secrets import token_hex
from typing import Any

import yaml

from kavka_cli.output import CommandError, note
from kavka_operator.api import API_VERSION
from kavka_operator.api.security import CONTROLLER_PORT_STEP, PORT_MAX
from kavka_operator.platform.local import probe
from kavka_operator.platform.local.files import read_text, write_whole
from kavka_operator.platform.local.layout import Layout
from kavka_operator.platform.local.node_identity import HOST

NAME = "local"
NAMESPACE = "default"
PORT = 9092
METRICS_PORT = 9644
BROKERS_MAX = 9
ATTEMPTS = 100  # to find a free port


def add_default_cluster(parser: ArgumentParser) -> None:
    """Add the options of a cluster that no file declares."""
    words = f"Without a file: the name of the cluster ({NAME}, or one of its own with --ephemeral)."
    parser.add_argument("--name", metavar="NAME", help=words)
    words = "Without a file: how many brokers (1)."
    parser.add_argument("--brokers", type=int, metavar="N", help=words)
    words = f"Without a file: the first broker's port; 0 is any that is free ({PORT}, or a free one where it is taken)."
    parser.add_argument("--port", type=int, metavar="PORT", help=words)
    words = "Without a file: remove the cluster with its records when it stops."
    parser.add_argument("--ephemeral", action="store_true", help=words)


def refuse_with_files(options: Namespace) -> None:
    """Raise CommandError where an option says what the files say."""
    given = (
        ("name", options.name),
        ("brokers", options.brokers),
        ("port", options.port),
        ("ephemeral", options.ephemeral),
    )
    if names := [name for name, value in given if value not in {None, False}]:
        raise CommandError(f"--{names[0]} is for `kavka up` without a file; write it into the resource")


def default_cluster(options: Namespace, state: Path) -> Path:
    """The resource file of the cluster, which is written at its first start. Raises CommandError."""
    name = options.name or (f"ephemeral-{token_hex(4)}" if options.ephemeral else NAME)
    layout = Layout.of(state, NAMESPACE, name)
    if (text := read_text(layout.declared)) is not None:
        _refuse_changes(options, layout, text)
        return layout.declared
    if layout.resources.exists():
        raise CommandError(
            f'there is a KafkaCluster "{name}" from a file; start it with `kavka up -f FILE`, or choose another --name'
        )
    document = _document(name, _brokers(options), *_ports(options))
    layout.make()
    words = "# Written by `kavka up`; change it, and `kavka apply -f` this file.\n"
    write_whole(layout.declared, words + yaml.safe_dump(document, sort_keys=False))
    if options.ephemeral:
        write_whole(layout.ephemeral, "")
    return layout.declared


def _refuse_changes(options: Namespace, layout: Layout, text: str) -> None:
    """Raise CommandError where an option is not what the cluster was made with."""
    spec = yaml.safe_load(text)["spec"]
    made = {"brokers": spec["nodePools"][0].get("replicas", 1), "port": spec["listeners"][0]["port"]}
    given = {"brokers": options.brokers, "port": options.port or None}
    for name, value in given.items():
        if value not in {None, made[name]}:
            raise CommandError(
                f'KafkaCluster "{layout.cluster}" was made with --{name} {made[name]}; change {layout.declared}, choose'
                f" another --name, or remove it with its records: kavka down --volumes {layout.cluster}"
            )


def _brokers(options: Namespace) -> int:
    """The number of brokers. Raises CommandError."""
    brokers = 1 if options.brokers is None else int(options.brokers)
    if not 1 <= brokers <= BROKERS_MAX:
        raise CommandError(f"--brokers: {brokers} is not from 1 to {BROKERS_MAX}; more of them want a resource file")
    return brokers


def _ports(options: Namespace) -> tuple[int, int]:
    """The ports of the first broker, and of its metrics page. Raises CommandError."""
    port, brokers = options.port, _brokers(options)
    highest = PORT_MAX - CONTROLLER_PORT_STEP - brokers
    if port is not None and not 0 <= port <= highest:
        raise CommandError(f"--port: {port} is not from 0 to {highest}")
    if port is None and _taken(PORT, brokers):
        note(f"port {PORT} is in use; the first broker has another one")
        port = 0
    chosen = port or (PORT if port is None else _free(brokers))
    is_usual = chosen == PORT and not _taken(METRICS_PORT, brokers, has_controller=False)
    return chosen, METRICS_PORT if is_usual else _free(brokers, {chosen, chosen + CONTROLLER_PORT_STEP})


def _taken(port: int, brokers: int, *, has_controller: bool = True) -> bool:
    """Whether a port that the brokers would listen on is in use."""
    steps = (0, CONTROLLER_PORT_STEP) if has_controller else (0,)
    return any(probe.port_is_taken(HOST, port + step + place) for step in steps for place in range(brokers))


def _free(brokers: int, others: Iterable[int] = ()) -> int:
    """A port that nobody uses, nor the ones above it for further brokers and controllers. Raises CommandError."""
    for _ in range(ATTEMPTS):
        with socket.socket() as trial:
            trial.bind((HOST, 0))
            port = int(trial.getsockname()[1])
        used = {port + place for place in range(brokers)}
        near = {other + place for other in others for place in range(brokers)}
        if port + CONTROLLER_PORT_STEP + brokers <= PORT_MAX and not used & near and not _taken(port, brokers):
            return port
    raise CommandError(f"no free port was found for {brokers} brokers; name one by --port")


def _document(name: str, brokers: int, port: int, metrics: int) -> dict[str, Any]:
    """The resource: topics are made at their first use, and groups wait for no further members."""
    return {
        "apiVersion": API_VERSION,
        "kind": "KafkaCluster",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "nodePools": [{"name": "nodes", "replicas": brokers}],
            "listeners": [{"name": "PLAINTEXT", "port": port}],
            "metrics": {"port": metrics},
            "config": {"group.initial.rebalance.delay.ms": 0},
        },
    }
