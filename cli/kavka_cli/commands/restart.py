"""`kavka restart`: asks for a restart of all nodes, one after the other by the rules of a roll."""

from argparse import ArgumentParser, Namespace
from datetime import UTC, datetime

from kavka_cli.cluster_annotations import add_cluster, annotate_cluster
from kavka_cli.resource_store import add_store
from kavka_operator.reconcile.rollout.restart import RESTART

HELP = "Restart all nodes, one after the other by the rules of a roll."


def add_options(parser: ArgumentParser) -> None:
    """Add the options of `kavka restart`."""
    add_cluster(parser)
    add_store(parser)


def run(options: Namespace) -> int:
    """Ask for a restart of all nodes; the exit code."""
    moment = datetime.now(UTC).isoformat(timespec="seconds")
    return annotate_cluster(options, lambda _: ({RESTART: moment}, "restarts: see `kavka get kvc` for its roll"))
