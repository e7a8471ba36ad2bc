"""`kavka hold`: keeps nodes from being restarted."""

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence

from kavka_cli.cluster_annotations import add_cluster_and_nodes, annotate_cluster, held_nodes, node_ids
from kavka_cli.local_resources import Document
from kavka_cli.output import CommandError
from kavka_operator.api.stored_resources import part
from kavka_operator.reconcile.rollout.roll import EVERY_NODE, HOLD_NODES

HELP = "Keep nodes from being restarted, also in the middle of a roll."


def add_options(parser: ArgumentParser) -> None:
    """Add the options of `kavka hold`."""
    add_cluster_and_nodes(parser, default="all")


def run(options: Namespace) -> int:
    """Keep nodes, or all, from being restarted; the exit code."""
    return annotate_cluster(options, lambda document: _hold(document, node_ids(options.nodes)))


def _hold(document: Document, nodes: Sequence[str]) -> tuple[Mapping[str, str | None], str]:
    known = [str(node.get("id")) for node in part(document, "status").get("nodes") or ()]
    if strangers := [node for node in nodes if known and node not in known]:
        raise CommandError(f"there is no node {strangers[0]}; there are {', '.join(known)}")
    held = held_nodes(document)
    if not nodes or EVERY_NODE in held:
        return {HOLD_NODES: EVERY_NODE}, "held: no node is restarted"
    every = sorted({*held, *nodes}, key=_number)
    return {HOLD_NODES: ",".join(every)}, f"held: nodes {', '.join(every)} are not restarted"


def _number(node: str) -> tuple[int, str]:
    return (int(node) if node.isdecimal() else -1), node
