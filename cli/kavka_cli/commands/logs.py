"""`kavka logs`: what the nodes of a local cluster say, and `kavka up` itself."""

import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from kavka_cli.local_clusters import (
    add_local_namespace,
    add_state_directory,
    is_running,
    state_directory,
    the_cluster,
)
from kavka_cli.output import CommandError, complain
from kavka_operator.platform.local.layout import Layout

HELP = "Print the log of a node of a local cluster, or of all of its nodes and `kavka up`."
TAIL_BYTES: Final = 64 * 1024
POLL_SECONDS: Final = 0.2


def add_options(parser: ArgumentParser) -> None:
    """Add the options of `kavka logs`."""
    add_state_directory(parser)
    parser.add_argument("cluster", nargs="?", help="The cluster; not needed while only one runs.")
    add_local_namespace(parser)
    words = "Only this node; may be given more than once."
    parser.add_argument("--node", type=int, action="append", default=[], metavar="ID", help=words)
    parser.add_argument("--follow", "-f", action="store_true", help="Print lines as they come, until Ctrl-C.")
    parser.add_argument("--tail", type=int, default=100, metavar="LINES", help="Lines of each log (%(default)s).")


def run(options: Namespace) -> int:
    """Print logs; the exit code."""
    try:
        layout = the_cluster(state_directory(options.state_dir), options.namespace, options.cluster)
        logs = logs_of(layout, options.node)
    except CommandError as error:
        return complain(error)
    try:
        ends = {path: _print_tail(path, options.tail, name) for name, path in logs.items()}
        while options.follow and is_running(layout):
            time.sleep(POLL_SECONDS)
            for name, path in logs.items():
                ends[path] = _print_from(path, ends[path], name)
    except BrokenPipeError:
        return 0  # the reader, such as `head`, has what it wanted
    return 0


def logs_of(layout: Layout, nodes: list[int]) -> dict[str, Path]:
    """The logs to print, by what their lines are marked with; one alone is not marked. Raises CommandError."""
    found = {f"node-{node}": layout.log(node) for node in nodes} or {
        path.stem: path for path in sorted(layout.supervisor_log.parent.glob("*.log"))
    }
    if missing := [name for name, path in found.items() if not path.exists()]:
        raise CommandError(f'KafkaCluster "{layout.cluster}" has no log of {", ".join(missing)}')
    if not found:
        raise CommandError(f'KafkaCluster "{layout.cluster}" has no logs yet')
    return {"": next(iter(found.values()))} if len(found) == 1 else found


def last_lines(path: Path, count: int) -> tuple[list[bytes], int]:
    """The last lines of a file, of at most `TAIL_BYTES`, and where they end."""
    with path.open("rb") as file:
        end = file.seek(0, 2)
        file.seek(max(0, end - TAIL_BYTES))
        lines = file.read(TAIL_BYTES).splitlines(keepends=True)
    if end > TAIL_BYTES:
        lines = lines[1:]  # the first is cut
    return lines[len(lines) - min(count, len(lines)) :], end


def _print_tail(path: Path, count: int, name: str) -> int:
    lines, end = last_lines(path, count)
    _write(lines, name)
    return end


def _print_from(path: Path, begin: int, name: str) -> int:
    """Print what a log has behind `begin`, as far as its lines are whole; returns where they end."""
    with path.open("rb") as file:
        if file.seek(0, 2) < begin:
            begin = 0  # it was begun again
        file.seek(begin)
        data = file.read()
    whole = data[: data.rfind(b"\n") + 1]
    _write(whole.splitlines(keepends=True), name)
    return begin + len(whole)


def _write(lines: list[bytes], name: str) -> None:
    sys.stdout.writelines(_marked(lines, name))
    sys.stdout.flush()


def _marked(lines: list[bytes], name: str) -> Iterator[str]:
    for line in lines:
        text = line.decode(errors="replace").rstrip("\n")
        yield f"{name}: {text}\n" if name else f"{text}\n"
