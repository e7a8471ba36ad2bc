"""Sets annotations of a KafkaCluster for `kavka approve`, `hold`, `release` and `restart`.

They touch nothing else of the resource, so that neither a person's field manager nor a tool that applies it from a
repository is disturbed.
"""

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping

from kavka_cli.local_clusters import add_state_directory
from kavka_cli.local_resources import Document
from kavka_cli.output import CommandError, complain, say
from kavka_cli.resource_store import add_store, cluster_document, open_store, store_options
from kavka_operator.api.stored_resources import part
from kavka_operator.reconcile.rollout.roll import HOLD_NODES, names_in

Change = Callable[[Document], tuple[Mapping[str, str | None], str]]
"""The annotations to set on a KafkaCluster, and a message about them. Raises CommandError."""


def add_cluster(parser: ArgumentParser) -> None:
    """Add the state directory and the name of the KafkaCluster."""
    add_state_directory(parser)
    parser.add_argument("cluster", nargs="?", help="The KafkaCluster; not needed where there is one.")


def add_cluster_and_nodes(parser: ArgumentParser, *, default: str) -> None:
    """Add the options of a command for some nodes of a KafkaCluster; `default` says which those are without any."""
    add_cluster(parser)
    parser.add_argument("--nodes", metavar="ID,...", help=f"The nodes ({default}).")
    add_store(parser)


def annotate_cluster(options: Namespace, change: Change) -> int:
    """Make the change of the KafkaCluster that the options name; the exit code."""
    try:
        chosen = store_options(options)
        store = open_store(chosen)
        document = cluster_document(store, options.cluster, chosen.namespace or store.namespace)
        annotations, message = change(document)
        store.annotate(document, annotations)
    except CommandError as error:
        return complain(error)
    say(f"kafkacluster.kavka.dev/{document['metadata']['name']} {message}")
    return 0


def held_nodes(document: Document) -> list[str]:
    """The nodes that a KafkaCluster holds, or the word for all of them."""
    return names_in(str(part(part(document, "metadata"), "annotations").get(HOLD_NODES) or ""))


def node_ids(nodes: str | None) -> list[str]:
    """The ids of `--nodes`. Raises CommandError."""
    found = names_in(nodes or "")
    if strangers := [word for word in found if not word.isdecimal()]:
        raise CommandError(f'--nodes: "{strangers[0]}" is no id of a node; write for example 1,2')
    return found
