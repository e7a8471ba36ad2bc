"""The resources of local clusters, as commands find and name them."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kavka_cli.local_clusters import is_running
from kavka_cli.output import CommandError
from kavka_cli.resource_names import Named
from kavka_cli.selector import Selector
from kavka_cli.stopped_status import not_running
from kavka_operator.api import GROUP
from kavka_operator.api.files import Declared
from kavka_operator.api.kinds import AnyResource, Key, cluster_key, key_of
from kavka_operator.api.stored_resources import part
from kavka_operator.platform.local import node_identity
from kavka_operator.platform.local.layout import Layout, clusters
from kavka_operator.platform.local.store import Edit, Store

Document = dict[str, Any]


def known_resources(state: Path) -> dict[Key, AnyResource]:
    """Every resource of every local cluster."""
    return {key_of(resource): resource for layout in clusters(state) for resource in Store(layout).all()}


def write_to(
    layout: Layout, declared: Sequence[Declared], judge: Callable[[Sequence[Edit]], None] | None = None
) -> list[Edit]:
    """Write what is wanted of one cluster; the edit of each resource. What `judge` raises stops it."""
    layout.make()
    if not is_running(layout):
        node_identity.upgrade(layout)
    return Store(layout).apply(declared, datetime.now(UTC), judge)


def documents_of(layout: Layout) -> dict[Key, Document]:
    """Every resource of a cluster as it is shown: the status of a cluster that does not run is marked as old."""
    documents = Store(layout).documents()
    if is_running(layout):
        return documents
    now = datetime.now(UTC)
    return {key: not_running(document, layout.cluster, now) for key, document in documents.items()}


def found_documents(
    named: list[Named], state: Path, namespace: str | None, selector: Selector
) -> dict[Key, tuple[Layout, Document]]:
    """The named resources of a namespace, or of all where it is None, with their cluster. Raises CommandError."""
    layouts = {key: layout for layout in clusters(state) for key in Store(layout).documents()}
    documents = {key: found for layout in clusters(state) for key, found in documents_of(layout).items()}
    chosen = choose(documents, named, namespace, selector)
    return {key: (layouts[key], document) for key, document in chosen.items()}


def choose(
    documents: Mapping[Key, Document], named: list[Named], namespace: str | None, selector: Selector
) -> dict[Key, Document]:
    """The named resources of a namespace, or of all where it is None. Raises CommandError."""
    found = {
        key: document
        for key, document in documents.items()
        if namespace in {None, key[1]} and ({(key[0], None), (key[0], key[2])} & set(named))
    }
    there = {(kind, name) for kind, _, name in found}
    if missing := [pair for pair in named if pair[1] is not None and pair not in there]:
        raise CommandError(not_found(*missing[0], namespace))
    return {key: shown for key, shown in found.items() if selector.takes(part(shown["metadata"], "labels"))}


def not_found(kind: str, name: str | None, namespace: str | None) -> str:
    """Words for a resource that does not exist."""
    where = "any namespace" if namespace is None else f'namespace "{namespace}"'
    return f'there is no {kind} "{name}" in {where}'


def layout_of(resource: AnyResource, state: Path) -> Layout:
    """The paths of the cluster that a resource belongs to."""
    _, namespace, name = cluster_key(resource)
    return Layout.of(state, namespace, name)


def full_name(kind: str, name: str) -> str:
    """A resource as kubectl names it: topic.kavka.dev/orders."""
    return f"{kind.lower()}.{GROUP}/{name}"
