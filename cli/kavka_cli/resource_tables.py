"""Prints resources: as tables, as YAML, and the nodes of a cluster."""

import sys
from collections.abc import Iterator
from datetime import UTC, datetime

import yaml

from kavka_cli.local_resources import Document, documents_of
from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.api.kinds import KINDS
from kavka_operator.api.printer_columns import node_table, table
from kavka_operator.platform.local.layout import Layout


def overview(layout: Layout) -> str:
    """All resources of a cluster, a table for each kind."""
    documents = list(documents_of(layout).values())
    return "\n\n".join(tables(documents, wide=False))


def nodes_overview(layout: Layout) -> str:
    """The nodes of a cluster, a line each."""
    documents = documents_of(layout).values()
    return "\n".join(node_table(document) for document in documents if document["kind"] == KafkaCluster.kind_name)


def sort_key(document: Document) -> tuple[int, str, str]:
    """The sort key of a resource in a list: clusters first, then by namespace and name."""
    kind, metadata = document["kind"], document["metadata"]
    number = list(KINDS).index(kind) if kind in KINDS else len(KINDS)
    return number, metadata["namespace"], metadata["name"]


def tables(documents: list[Document], *, wide: bool, namespaces: bool = False) -> Iterator[str]:
    """A table for each kind, and one of the nodes of each cluster."""
    now = datetime.now(UTC)
    for name, kind in KINDS.items():
        if of_kind := [document for document in documents if document["kind"] == name]:
            yield table(kind, of_kind, now, wide=wide, namespaces=namespaces)
        if kind is KafkaCluster:
            yield from (nodes for document in of_kind if (nodes := node_table(document)))


def as_yaml(value: Document) -> str:
    """A document as YAML, with letters that stdout can print."""
    has_all_letters = (sys.stdout.encoding or "utf-8").lower().startswith("utf")
    return yaml.safe_dump(value, sort_keys=False, allow_unicode=has_all_letters, width=110).rstrip()
