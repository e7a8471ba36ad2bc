"""`kavka up`: runs a cluster as processes of this machine."""

import subprocess
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from kavka_cli.local_clusters import add_state_directory, is_running, state_directory
from kavka_cli.local_resources import known_resources
from kavka_cli.output import CommandError, complain, say
from kavka_cli.resource_files import add_files
from kavka_cli.resource_tables import overview
from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.api.files import BadResourcesError, Declared, load
from kavka_operator.api.kinds import cluster_key, key_of
from kavka_operator.platform.local import members, processes
from kavka_operator.platform.local.layout import Layout
from kavka_operator.platform.local.limits import lost_volumes, unsupported
from kavka_operator.platform.local.signals import Signals, Stopped
from kavka_operator.platform.local.store import Store
from kavka_operator.platform.local.up import Up, UpError

DOWN_SECONDS_MAX = 45.0
READY_SECONDS_MAX = 120.0
POLL_SECONDS = 0.05
COMMAND = (sys.executable, "-m", "kavka_cli")


HELP = "Run the cluster of a resource file as processes of this machine, until Ctrl-C or `kavka down`."


def add_options(parser: ArgumentParser) -> None:
    """Add the options of `kavka up`."""
    add_state_directory(parser)
    add_files(parser)
    parser.add_argument("--detach", "-d", action="store_true", help="Return when it is ready; it runs on.")


def run(options: Namespace) -> int:
    """Run a cluster; the exit code."""
    files, state = options.filename, state_directory(options.state_dir)
    signals = Signals()
    try:
        with signals:
            layout = _prepare(files, state)
            return _detached(files, state, layout) if options.detach else _foreground(layout, signals)
    except (BadResourcesError, CommandError, UpError) as error:
        return complain(error)
    except Stopped as stopped:
        return 128 + stopped.number


def _prepare(files: list[Path], state: Path) -> Layout:
    """Check the files as a whole, then write them into the state directory of their cluster. Raises CommandError."""
    if not files:
        raise CommandError("name a resource file: kavka up -f examples/quickstart.yaml")
    declared = load(files, known_resources(state))
    cluster = _only_cluster(declared, files)
    layout = Layout.of(state, cluster.metadata.namespace, cluster.name)
    known = members.upgrade(layout)
    if problem := unsupported(cluster, layout, known) or lost_volumes(cluster, layout, known):
        raise CommandError(problem)
    if is_running(layout):
        raise CommandError(
            f"{cluster.identity} is running already; change it with `kavka apply`, stop it with `kavka down`"
        )
    layout.make()
    Store(layout).apply(declared, datetime.now(UTC))
    return layout


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


def _foreground(layout: Layout, signals: Signals) -> int:
    from kavka_operator.kafka.client import KafkaClient

    def announce() -> None:
        say(f"\n{overview(layout)}\n\nlogs and data: {layout.root}\nready; Ctrl-C stops it")

    try:
        Up(layout, signals, KafkaClient, say, announce).run()
    except Stopped as stopped:
        say(f"stopped ({stopped})")
    return 0


def _detached(files: list[Path], state: Path, layout: Layout) -> int:
    """Start another `kavka up` that has no terminal, and wait until it is ready. Raises CommandError."""
    options = [word for file in files for word in ("-f", str(file.absolute()))]
    log = layout.supervisor_log
    begin = log.stat().st_size if log.exists() else 0
    process = processes.start([*COMMAND, "up", *options, "--state-dir", str(state)], log, leashed=False)
    try:
        _wait_until_ready(process, layout, log, begin)
    except BaseException:
        processes.stop_children([process], DOWN_SECONDS_MAX)
        raise
    say(f"{overview(layout)}\n\nlogs and data: {layout.root}\nready; `kavka down` stops it")
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
