"""Makes what each place on the page shows from the looks at a cluster: facts, sheets and notes. Pure."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from kavka_operator.live_views import sheets
from kavka_operator.live_views.model import History
from kavka_operator.live_views.tables import VIEWS
from kavka_operator.web_page.documents import Document, sheet_document
from kavka_operator.web_page.sheet import Sheet

CLUSTERS: Final = "clusters"
ACCESS: Final = "access"
ROLL: Final = "roll"
NEW: Final = "new"
"""The item of the quotas that is none yet."""
TITLES: Final[Mapping[str, str]] = {
    "topics": "Topics",
    "groups": "Groups",
    "shares": "Share groups",
    "clients": "Clients",
    "quotas": "Quotas",
    "nodes": "Nodes",
    "transactions": "Open transactions",
}
"""The views of a cluster with looks, in the order of the page; `access` is asked for by itself."""


def clusters_view(found: sheets.Histories) -> Document:
    """The first page: a row for each cluster."""
    links = {name: (name, "topics") for name in found}
    return {"facts": [], "sheets": [sheet_document(sheets.clusters(found), "Clusters", links)], "untold": []}


def cluster_view(history: History, cluster: str, view: str, item: str | None) -> Document:
    """A view of a cluster, or of one topic or group of it. Raises LookupError where there is no such view or item."""
    if item is not None:
        return {**ITEMS[view](history, cluster, item), "untold": list(history.now.untold)}
    sheet = VIEWS[view](history) if view in TITLES else None
    if sheet is None:
        raise LookupError(view)
    return {
        "facts": sheets.cluster_facts(history),
        "sheets": [sheet_document(sheet, TITLES[view], _links(sheet, cluster, view))],
        "untold": list(history.now.untold),
    }


def _links(sheet: Sheet, cluster: str, view: str) -> dict[str, tuple[str, ...]]:
    """The places that rows lead to: of topics and groups their own, of clients what explains their limits."""
    if view in {"topics", "groups"}:
        return {row.key: (cluster, view, row.key) for row in sheet.rows}
    if view == "shares":
        return {row.key: (cluster, "groups", row.key.partition("\0")[0]) for row in sheet.rows}
    if view == "quotas":
        return {row.key: (cluster, view, row.key.partition("\0")[0]) for row in sheet.rows if "=" in row.key}
    if view == "clients":
        keys = {row.key: row.key.split("\0") for row in sheet.rows}
        return {key: (cluster, "clients", *parts[:2]) for key, parts in keys.items() if len(parts) == 3}
    return {}


def _topic(history: History, cluster: str, topic: str) -> Document:
    if topic not in history.by_topic:
        raise LookupError(topic)
    readers = sheets.readers(history, topic)
    links = {row.key: (cluster, "groups", row.key) for row in readers.rows}
    found = sheets.partitions(history, topic)
    return {
        "facts": sheets.topic_facts(history, topic),
        "sheets": [sheet_document(found, "Partitions"), sheet_document(readers, "Groups that read it", links)],
        "partitions": sorted(partition.index for partition in history.by_topic[topic]),
        "end": _end(history, topic),
    }


def _end(history: History, topic: str) -> int | None:
    """The sum of the ends of a topic's partitions; None where one is not told."""
    ends = history.now.ends or {}
    keys = [partition.key for partition in history.by_topic[topic]]
    return sum(ends[key] for key in keys) if all(key in ends for key in keys) else None


def _group(history: History, cluster: str, name: str) -> Document:
    if history.now.groups is None:
        untold = sheet_document(sheets.offsets(history, name), "Committed offsets")
        return {"facts": [], "sheets": [{**untold, "note": "this cluster does not tell its groups"}]}
    group = history.now.groups[name]
    offsets = sheets.offsets(history, name)
    links = {row.key: (cluster, "topics", row.key.split("\0")[0]) for row in offsets.rows}
    return {
        "facts": sheets.group_facts(history, name, group),
        "sheets": [
            sheet_document(offsets, "Start offsets" if group.is_share else "Committed offsets", links),
            sheet_document(sheets.members(group), "Members"),
        ],
    }


def _client(history: History, _: str, names: str) -> Document:
    """The rows of a client. It may have left: what explains its limits is there all the same."""
    sheet = VIEWS["clients"](history)
    rows = tuple(row for row in sheet.rows if row.key.rpartition("\0")[0] == names)
    return {"facts": [], "sheets": [sheet_document(replace(sheet, rows=rows), "Rates and limits")]}


def _quota(history: History, _: str, entity: str) -> Document:
    """The limits of an entity. They may be deleted: the resource that set them is there all the same."""
    if entity == NEW:
        return {"facts": [], "sheets": []}
    if "=" not in entity:
        raise LookupError(entity)
    sheet = VIEWS["quotas"](history)
    rows = tuple(row for row in sheet.rows if row.key.partition("\0")[0] == entity)
    return {"facts": [], "sheets": [sheet_document(replace(sheet, rows=rows), "Limits")]}


ITEMS: Final[Mapping[str, Callable[[History, str, str], Document]]] = {
    "topics": _topic,
    "groups": _group,
    "clients": _client,
    "quotas": _quota,
}
"""What is shown of an item: of a client by user and client id, with a zero byte between them."""
