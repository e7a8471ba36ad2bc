"""Reads the resource files of a command, and checks that local clusters can run what they declare."""

from argparse import ArgumentParser
from collections.abc import Iterable
from pathlib import Path

from kavka_cli.local_resources import known_resources, layout_of
from kavka_cli.output import CommandError
from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.api.files import Declared, load
from kavka_operator.platform.local import node_identity
from kavka_operator.platform.local.layout import Layout
from kavka_operator.platform.local.unsupported import lost_volumes, unsupported


def add_files(parser: ArgumentParser) -> None:
    """Add `--filename`."""
    words = "A resource file, a directory of them or - for standard input; may be given more than once."
    parser.add_argument("--filename", "-f", type=Path, action="append", default=[], metavar="FILE", help=words)


def declared_by_cluster(command: str, files: list[Path], state: Path) -> dict[Layout, list[Declared]]:
    """Resources that the files declare, checked, by cluster. Raises BadResourcesError and CommandError."""
    if not files:
        raise CommandError(f"name a resource file: kavka {command} -f FILE")
    declared = load(files, known_resources(state))
    _refuse_unsupported(declared, state)
    groups: dict[Layout, list[Declared]] = {}
    for entry in declared:
        groups.setdefault(layout_of(entry.resource, state), []).append(entry)
    return groups


def _refuse_unsupported(declared: Iterable[Declared], state: Path) -> None:
    """Raise CommandError for a cluster that cannot be run, and print notes on those that can."""
    for entry in declared:
        cluster = entry.resource
        if isinstance(cluster, KafkaCluster):
            layout = layout_of(cluster, state)
            known = node_identity.read(layout)
            if problem := unsupported(cluster, layout, known) or lost_volumes(cluster, layout, known):
                raise CommandError(problem)
