"""`kavka release`: ends a hold of nodes."""

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence

from kavka_cli.cluster_annotations import add_cluster_and_nodes, annotate_cluster, held_nodes, node_ids
from kavka_cli.local_resources import Document
from kavka_cli.output import CommandError
from kavka_operator.api.stored_resources import part
from kavka_operator.reconcile.rollout.roll import EVERY_NODE, HOLD_NODES

HELP = "End a hold, so that a roll goes on."


def add_options(parser: ArgumentParser) -> None:
    """Add the options of `kavka release`."""
    add_cluster_and_nodes(parser, default="all that are held")


def run(options: Namespace) -> int:
    """Hold nodes, or any, no longer; the exit code."""
    return annotate_cluster(options, lambda document: _release(document, node_ids(options.nodes)))


def _release(document: Document, nodes: Sequence[str]) -> tuple[Mapping[str, str | None], str]:
    held = held_nodes(document)
    if part(part(document, "spec"), "rollout").get("hold"):
        raise CommandError("spec.rollout.hold is true, which holds all nodes; change it where the resource is written")
    if nodes and EVERY_NODE in held:
        raise CommandError("all nodes are held together; release all, then hold those that are to stay")
    left = [node for node in held if nodes and node not in nodes]
    if not left:
        return {HOLD_NODES: None}, "released: every node may be restarted"
    return {HOLD_NODES: ",".join(left)}, f"released; held are nodes {', '.join(left)}"
