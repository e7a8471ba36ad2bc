"""`kavka get`: lists resources, and with `--watch` those that change, until Ctrl-C."""

import json
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator

from kavka_cli.local_clusters import add_state_directory
from kavka_cli.local_resources import Document, choose, full_name
from kavka_cli.output import CommandError, complain, note, say
from kavka_cli.resource_names import add_resource_names, parse_names
from kavka_cli.resource_store import add_store, open_store, store_options
from kavka_cli.resource_tables import as_yaml, sort_key, tables
from kavka_cli.selector import add_selector, parse_selector

HELP = "List resources as `kubectl get` does."
FORMS = ("table", "wide", "yaml", "json", "name")
WATCH_SECONDS = 0.5


def add_options(parser: ArgumentParser) -> None:
    """Add the options of `kavka get`."""
    add_state_directory(parser)
    add_resource_names(parser)
    parser.add_argument("--output", "-o", choices=FORMS, default="table", help="How to print.")
    add_store(parser)
    parser.add_argument("--all-namespaces", "-A", action="store_true", help="Of every namespace.")
    add_selector(parser)
    parser.add_argument("--watch", "-w", action="store_true", help="Go on, and print what changes, until Ctrl-C.")


def run(options: Namespace, pause: Callable[[float], None] = time.sleep) -> int:
    """Print resources of a namespace, or of all; the exit code. `pause` takes the seconds between two looks."""

    def look() -> list[Document]:
        found = choose(store.documents(namespace), named, namespace, selector)
        return sorted(found.values(), key=sort_key)

    output, chosen = options.output, store_options(options)
    try:
        named, selector = parse_names(options.words), parse_selector(options.selector)
        store = open_store(chosen)
        namespace = None if options.all_namespaces else chosen.namespace or store.namespace
        documents = look()
        if not documents:
            note("no resources" if namespace is None else f'no resources in namespace "{namespace}"')
        for number, changed in enumerate(changes(look, pause) if options.watch else [documents]):
            if changed or (output in {"json", "yaml"} and not options.watch):
                is_single = len(named) == len(changed) == 1 and named[0][1] is not None
                text = _printed(changed, output, single=is_single, namespaces=namespace is None)
                say(f"\n{text}" if number else text)
    except KeyboardInterrupt:
        return 0
    except CommandError as error:
        return complain(error)
    return 0


def _printed(documents: list[Document], output: str, *, single: bool, namespaces: bool) -> str:
    whole: Document = documents[0] if single else {"apiVersion": "v1", "kind": "List", "items": documents}
    match output:
        case "yaml":
            return as_yaml(whole)
        case "json":
            return json.dumps(whole, indent=2)
        case "name":
            return "\n".join(full_name(document["kind"], document["metadata"]["name"]) for document in documents)
        case _:
            return "\n\n".join(tables(documents, wide=output == "wide", namespaces=namespaces))


def changes(look: Callable[[], list[Document]], pause: Callable[[float], None]) -> Iterator[list[Document]]:
    """All documents first, then after each look those that are new or have changed."""
    shown: dict[tuple[str, str, str], Document] = {}
    while True:
        seen = {_name(document): document for document in look()}
        fresh = [
            document for key, document in seen.items() if key not in shown or _lasting(shown[key]) != _lasting(document)
        ]
        if fresh:
            yield fresh
        shown = seen
        pause(WATCH_SECONDS)


def _name(document: Document) -> tuple[str, str, str]:
    metadata = document["metadata"]
    return document["kind"], metadata["namespace"], metadata["name"]


def _lasting(document: Document) -> Document:
    """The document without the times of its conditions: those of a stopped cluster are the time of the look."""
    status = document.get("status", {})
    conditions = [{**condition, "lastTransitionTime": None} for condition in status.get("conditions", ())]
    return {**document, "status": {**status, "conditions": conditions}}
