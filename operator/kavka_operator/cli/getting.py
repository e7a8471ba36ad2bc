"""`kavka get` and `kavka describe`: what is stored of a resource, and what was last seen of it."""

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import yaml

from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.api.kinds import KINDS
from kavka_operator.api.table import aligned, node_table, table
from kavka_operator.cli.naming import parse_names
from kavka_operator.cli.selecting import EVERYTHING, parse_selector
from kavka_operator.cli.stored import Document, documents_of, found_documents, full_name
from kavka_operator.cli.watching import changes
from kavka_operator.cli.words import CommandError, complain, say, state_directory
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
    chosen_state: Path | None,
    namespace: str | None,
    labels: str = "",
    *,
    watch: bool = False,
) -> int:
    """Print resources of a namespace, or of all where it is None; the exit code."""

    def look() -> list[Document]:
        found = found_documents(named, state_directory(chosen_state), namespace, selector)
        return [document for _, document in sorted(found.values(), key=lambda located: _place(located[1]))]

    try:
        named, selector = parse_names(words), parse_selector(labels)
        documents = look()
        if not documents:
            say("no resources" if namespace is None else f'no resources in namespace "{namespace}"')
        for number, changed in enumerate(changes(look) if watch else [documents]):
            if changed:
                is_single = len(named) == len(changed) == 1 and named[0][1] is not None
                text = _printed(changed, output, single=is_single, namespaces=namespace is None)
                say(f"\n{text}" if number else text)
    except KeyboardInterrupt:
        return 0
    except CommandError as error:
        return complain(error)
    return 0


def describe(words: Sequence[str], chosen_state: Path | None, namespace: str) -> int:
    """Print resources for a person; the exit code."""
    try:
        found = found_documents(parse_names(words), state_directory(chosen_state), namespace, EVERYTHING)
    except CommandError as error:
        return complain(error)
    documents = sorted((document for _, document in found.values()), key=_place)
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


def _place(document: Document) -> tuple[int, str, str]:
    """The sort key of a resource in a list: clusters first, then by namespace and name."""
    kind, metadata = document["kind"], document["metadata"]
    rank = list(KINDS).index(kind) if kind in KINDS else len(KINDS)
    return rank, metadata["namespace"], metadata["name"]


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
    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=110).rstrip()


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())
