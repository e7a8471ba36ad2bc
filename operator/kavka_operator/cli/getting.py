"""`kavka get` and `kavka describe`: what is stored of a resource, and what was last seen of it."""

import json
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

import yaml

from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.api.kinds import KINDS
from kavka_operator.api.table import aligned, node_table, table
from kavka_operator.cli.naming import parse_names
from kavka_operator.cli.places import Whereabouts, place_of
from kavka_operator.cli.selecting import EVERYTHING, parse_selector
from kavka_operator.cli.stored import Document, choose, documents_of, full_name
from kavka_operator.cli.watching import changes
from kavka_operator.cli.words import CommandError, complain, note, say
from kavka_operator.platform.local.layout import Layout


def overview(layout: Layout) -> str:
    """All resources of a cluster, a table for each kind."""
    documents = list(documents_of(layout).values())
    return "\n\n".join(_tables(documents, wide=False))


def nodes_overview(layout: Layout) -> str:
    """The nodes of a cluster, a line each."""
    documents = documents_of(layout).values()
    return "\n".join(node_table(document) for document in documents if document["kind"] == KafkaCluster.kind_name)


def get(
    words: Sequence[str],
    output: str,
    asked: Whereabouts,
    labels: str = "",
    *,
    watch: bool = False,
    everywhere: bool = False,
) -> int:
    """Print resources of a namespace, or of `everywhere`; the exit code."""

    def look() -> list[Document]:
        found = choose(place.documents(namespace), named, namespace, selector)
        return sorted(found.values(), key=_rank)

    try:
        named, selector = parse_names(words), parse_selector(labels)
        place = place_of(asked)
        namespace = None if everywhere else asked.namespace or place.namespace
        documents = look()
        if not documents:
            note("no resources" if namespace is None else f'no resources in namespace "{namespace}"')
        for number, changed in enumerate(changes(look) if watch else [documents]):
            if changed or (output in {"json", "yaml"} and not watch):
                is_single = len(named) == len(changed) == 1 and named[0][1] is not None
                text = _printed(changed, output, single=is_single, namespaces=namespace is None)
                say(f"\n{text}" if number else text)
    except KeyboardInterrupt:
        return 0
    except CommandError as error:
        return complain(error)
    return 0


def describe(words: Sequence[str], asked: Whereabouts) -> int:
    """Print resources for a person; the exit code."""
    try:
        named, place = parse_names(words), place_of(asked)
        namespace = asked.namespace or place.namespace
        found = choose(place.documents(namespace), named, namespace, EVERYTHING)
    except CommandError as error:
        return complain(error)
    documents = sorted(found.values(), key=_rank)
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
        _yaml({"kind": document["kind"], **document["metadata"]}),
        "spec:\n" + _indented(_yaml(document.get("spec", {}))),
        "status:\n" + _indented(_yaml(status) if status else "{}"),
        *(["nodes:\n" + _indented(nodes)] if nodes else []),
        "conditions:\n" + _indented(aligned([["TYPE", "STATUS", "REASON", "SINCE", "MESSAGE"], *rows])),
    ]
    return "\n".join(parts)


def _rank(document: Document) -> tuple[int, str, str]:
    """The sort key of a resource in a list: clusters first, then by namespace and name."""
    kind, metadata = document["kind"], document["metadata"]
    number = list(KINDS).index(kind) if kind in KINDS else len(KINDS)
    return number, metadata["namespace"], metadata["name"]


def _printed(documents: list[Document], output: str, *, single: bool, namespaces: bool) -> str:
    whole: Document = documents[0] if single else {"apiVersion": "v1", "kind": "List", "items": documents}
    match output:
        case "yaml":
            return _yaml(whole)
        case "json":
            return json.dumps(whole, indent=2)
        case "name":
            return "\n".join(full_name(document["kind"], document["metadata"]["name"]) for document in documents)
        case _:
            return "\n\n".join(_tables(documents, wide=output == "wide", namespaces=namespaces))


def _tables(documents: list[Document], *, wide: bool, namespaces: bool = False) -> Iterator[str]:
    now = datetime.now(UTC)
    for name, kind in KINDS.items():
        if of_kind := [document for document in documents if document["kind"] == name]:
            yield table(kind, of_kind, now, wide=wide, namespaces=namespaces)
        if kind is KafkaCluster:
            yield from (nodes for document in of_kind if (nodes := node_table(document)))


def _yaml(value: Document) -> str:
    has_all_letters = (sys.stdout.encoding or "utf-8").lower().startswith("utf")
    return yaml.safe_dump(value, sort_keys=False, allow_unicode=has_all_letters, width=110).rstrip()


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())
