"""`kavka describe`: what is stored of a resource, and what was last seen of it."""

from argparse import ArgumentParser, Namespace

from kavka_cli.local_clusters import add_state_directory
from kavka_cli.local_resources import Document, choose
from kavka_cli.output import CommandError, complain, say
from kavka_cli.resource_names import add_resource_names, parse_names
from kavka_cli.resource_store import add_store, open_store, store_options
from kavka_cli.resource_tables import as_yaml, sort_key
from kavka_cli.selector import EVERYTHING
from kavka_operator.api.table import aligned, node_table

HELP = "Say all that is known of a resource."


def add_options(parser: ArgumentParser) -> None:
    """Add the options of `kavka describe`."""
    add_state_directory(parser)
    add_resource_names(parser)
    add_store(parser)


def run(options: Namespace) -> int:
    """Print resources for a person; the exit code."""
    try:
        chosen = store_options(options)
        named, store = parse_names(options.words), open_store(chosen)
        namespace = chosen.namespace or store.namespace
        found = choose(store.documents(namespace), named, namespace, EVERYTHING)
    except CommandError as error:
        return complain(error)
    documents = sorted(found.values(), key=sort_key)
    say("\n\n".join(map(_described, documents)) or f'no resources in namespace "{namespace}"')
    return 0


def _described(document: Document) -> str:
    status = {key: value for key, value in document["status"].items() if key not in {"conditions", "nodes"}}
    rows = [
        [
            condition["type"],
            condition["status"],
            condition["reason"],
            condition["lastTransitionTime"],
            condition["message"],
        ]
        for condition in document["status"].get("conditions", ())
    ]
    nodes = node_table(document)
    parts = [
        as_yaml({"kind": document["kind"], **document["metadata"]}),
        "spec:\n" + _indented(as_yaml(document.get("spec", {}))),
        "status:\n" + _indented(as_yaml(status) if status else "{}"),
        *(["nodes:\n" + _indented(nodes)] if nodes else []),
        "conditions:\n" + _indented(aligned([["TYPE", "STATUS", "REASON", "SINCE", "MESSAGE"], *rows])),
    ]
    return "\n".join(parts)


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())
