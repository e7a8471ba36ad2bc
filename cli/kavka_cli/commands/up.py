"""`kavka up`: runs a cluster as processes of this machine."""

import json
import os
import subprocess
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from kavka_cli.console_process import KEY_VARIABLE, ConsoleAddress, ConsoleProcess, add_console, console_address
from kavka_cli.default_cluster import add_default_cluster, default_cluster, refuse_with_files
from kavka_cli.local_clusters import add_state_directory, is_running, state_directory
from kavka_cli.local_resources import known_resources
from kavka_cli.output import CommandError, complain, note, say
from kavka_cli.resource_files import add_files
from kavka_cli.resource_tables import overview
from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.api.files import BadResourcesError, Declared, load
from kavka_operator.api.kinds import cluster_key, key_of
from kavka_operator.platform.local import node_identity, probe, processes
from kavka_operator.platform.local.layout import Layout
from kavka_operator.platform.local.removal import remove
from kavka_operator.platform.local.server_properties import local_nodes
from kavka_operator.platform.local.signals import Signals, Stopped
from kavka_operator.platform.local.store import Store
from kavka_operator.platform.local.unsupported import lost_volumes, unsupported
from kavka_operator.platform.local.up import Up, UpError

DOWN_SECONDS_MAX = 45.0
READY_SECONDS_MAX = 120.0
POLL_SECONDS = 0.05
COMMAND = (sys.executable, "-m", "kavka_cli")


HELP = "Run a broker, or the cluster of a resource file, as processes of this machine, until Ctrl-C or `kavka down`."


def add_options(parser: ArgumentParser) -> None:
    """Add the options of `kavka up`."""
    add_state_directory(parser)
    add_files(parser)
    add_default_cluster(parser)
    parser.add_argument("--detach", "-d", action="store_true", help="Run in the background; return once ready.")
    add_console(parser)
    words = "Output format; json is one line, once ready: bootstrapServers, metrics, cluster, stateDirectory, console."
    parser.add_argument("--output", "-o", choices=["json"], help=words)


def run(options: Namespace) -> int:
    """Run a cluster; the exit code."""
    state, is_json = state_directory(options.state_dir), options.output == "json"
    signals = Signals()
    try:
        with signals:
            page = console_address(options)
            files = _files(options, state)
            layout = _prepare(files, state)
            if options.detach:
                return _detached(files, layout, is_json=is_json, page=page)
            return _foreground(layout, signals, is_json=is_json, page=page)
    except (BadResourcesError, CommandError, UpError) as error:
        return complain(error)
    except Stopped as stopped:
        return 128 + stopped.number


def _files(options: Namespace, state: Path) -> list[Path]:
    """The resource files, or the one of a cluster that no file declares. Raises CommandError."""
    if options.filename:
        refuse_with_files(options)
        return list(options.filename)
    return [default_cluster(options, state)]


def _prepare(files: list[Path], state: Path) -> Layout:
    """Check the files as a whole, then write them into the state directory of their cluster. Raises CommandError."""
    declared = load(files, known_resources(state))
    cluster = _only_cluster(declared, files)
    layout = Layout.of(state, cluster.metadata.namespace, cluster.name)
    known = node_identity.upgrade(layout)
    if problem := unsupported(cluster, layout, known) or lost_volumes(cluster, layout, known):
        raise CommandError(problem)
    if is_running(layout):
        raise CommandError(
            f"{cluster.identity} is running already; change it with `kavka apply`, stop it with `kavka down`"
        )
    _refuse_taken_ports(cluster, layout)
    layout.make()
    Store(layout).apply(declared, datetime.now(UTC))
    return layout


def _refuse_taken_ports(cluster: KafkaCluster, layout: Layout) -> None:
    """Raise CommandError where another program has a port, before anything is started and waits for it."""
    if cluster.spec.external is not None or any(layout.pids()):  # nodes that an earlier run left are stopped first
        return
    known = node_identity.read(layout).joined_by(
        cluster, lambda port: not probe.port_is_taken(node_identity.HOST, port)
    )
    for node in local_nodes(cluster, layout, known):
        for port in node.ports:
            if probe.port_is_taken(node.host, port):
                raise CommandError(
                    f"node {node.id}: port {port} of {node.host} is in use by another program; stop that one, or"
                    " choose another port"
                )


def _only_cluster(declared: Sequence[Declared], files: list[Path]) -> KafkaCluster:
    """The one KafkaCluster of the files. Raises CommandError."""
    found = [entry.resource for entry in declared if isinstance(entry.resource, KafkaCluster)]
    shown = ", ".join(map(str, files))
    if len(found) != 1:
        raise CommandError(f"{shown}: {len(found)} KafkaClusters; `kavka up` runs one, so give it files with one")
    elsewhere = {
        cluster_key(entry.resource)[2] for entry in declared if cluster_key(entry.resource) != key_of(found[0])
    }
    if elsewhere:
        raise CommandError(
            f"{shown}: resources of other clusters ({', '.join(sorted(elsewhere))}); apply those by themselves"
        )
    return found[0]


def _foreground(layout: Layout, signals: Signals, *, is_json: bool, page: ConsoleAddress | None) -> int:
    from kavka_operator.kafka.client import KafkaClient

    tell = note if is_json else say
    console = ConsoleProcess(layout, page, tell) if page is not None else None

    def announce() -> None:
        shown = page if console is not None and console.start() else None
        say(as_json(layout, shown) if is_json else f"\n{_summary(layout, shown)}\nready; Ctrl-C stops it")

    try:
        Up(layout, signals, KafkaClient, tell, announce).run()
    except Stopped as stopped:
        tell(f"stopped ({stopped})")
    finally:
        if console is not None:
            console.stop()
        _forget(layout)
    return 0


def _forget(layout: Layout) -> None:
    """Remove a cluster that was to be there only as long as it runs."""
    if layout.ephemeral.exists():
        tell_what_is_left(remove(layout))


def tell_what_is_left(paths: Sequence[Path]) -> None:
    """Name what was not removed with a cluster, because Kavka did not make it."""
    for path in paths:
        note(f"left: {path} is not Kavka's")


def _summary(layout: Layout, page: ConsoleAddress | None) -> str:
    shown = "" if page is None else f"\nconsole: {page}"
    return f"{overview(layout)}\n\nlogs and data: {layout.root}{shown}"


def as_json(layout: Layout, page: ConsoleAddress | None = None) -> str:
    """The addresses of a running cluster, for programs, on one line; `page` is its console, if it has one."""
    cluster = next(resource for resource in Store(layout).all() if isinstance(resource, KafkaCluster))
    nodes = local_nodes(cluster, layout, node_identity.read(layout))
    found = {
        "cluster": layout.cluster,
        "namespace": layout.namespace,
        "bootstrapServers": ",".join(node.told for node in nodes if node.node.is_broker),
        "metrics": [f"http://{node.metrics}/metrics" for node in nodes if node.metrics],
        "stateDirectory": str(layout.root),
    }
    if page is not None:
        found["console"] = str(page)
    return json.dumps(found)


def _detached(files: list[Path], layout: Layout, *, is_json: bool, page: ConsoleAddress | None) -> int:
    """Start another `kavka up` that has no terminal, and wait until it is ready. Raises CommandError."""
    options = [word for file in files for word in ("-f", str(file.absolute()))]
    if page is not None:
        options += ["--console", str(page.port)]
        os.environ[KEY_VARIABLE] = page.key  # which the other `kavka up` has too
    state = layout.root.parent.parent
    log = layout.supervisor_log
    begin = log.stat().st_size if log.exists() else 0
    process = processes.start([*COMMAND, "up", *options, "--state-dir", str(state)], log, leashed=False)
    try:
        _wait_until_ready(process, layout, log, begin)
    except BaseException:
        processes.stop_children([process], DOWN_SECONDS_MAX)
        _forget(layout)
        raise
    say(as_json(layout, page) if is_json else f"{_summary(layout, page)}\nready; `kavka down` stops it")
    return 0


def _wait_until_ready(process: subprocess.Popen[bytes], layout: Layout, log: Path, begin: int) -> None:
    """Wait until the cluster is ready. Raises CommandError."""
    store = Store(layout)
    deadline = time.monotonic() + READY_SECONDS_MAX
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise CommandError(f"it ended before it was ready:\n{_since(log, begin)}")
        with suppress(StopIteration):
            cluster = next(resource for resource in store.all() if isinstance(resource, KafkaCluster))
            condition = cluster.status.condition("Ready")
            if condition is not None and condition.status == "True" and is_running(layout):
                return
        time.sleep(POLL_SECONDS)
    raise CommandError(f"it was not ready within {READY_SECONDS_MAX:.0f} s; see {log}")


def _since(log: Path, begin: int) -> str:
    with log.open("rb") as file:
        file.seek(begin)
        return file.read().decode(errors="replace").strip()
