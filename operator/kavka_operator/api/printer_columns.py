"""Tables as `kubectl get` prints them, from the printer columns of the kinds.

The paths are those of the CRDs, in the part of JSONPath that they use: fields and one filter on an equal value.
"""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from kavka_operator.api.resource import Column, Resource

GAP = "   "
NONE = "<none>"

_STEP = re.compile(r"\.(\w+)|\[\?\(@\.(\w+)==\"([^\"]+)\"\)\]")


def table(
    kind: type[Resource], documents: Sequence[dict[str, Any]], now: datetime, *, wide: bool, namespaces: bool = False
) -> str:
    """A table with name and columns, a line for each resource; with `namespaces` the namespace comes first."""
    columns = [column for column in kind.columns if wide or not column.priority]
    head = ["NAME", *(column.name.upper() for column in columns)]
    rows = [
        [document["metadata"]["name"], *(cell(column, document, now) for column in columns)] for document in documents
    ]
    if not namespaces:
        return aligned([head, *rows])
    spaces = [document["metadata"]["namespace"] for document in documents]
    return aligned([["NAMESPACE", *head], *([space, *row] for space, row in zip(spaces, rows, strict=True))])


NODE_HEAD = ("NODE", "RACK", "STATE", "LEADERS", "UNDER-REPLICATED", "CONTROLLER", "RESTARTS", "ADDRESS")


def node_table(cluster: dict[str, Any]) -> str:
    """A table of the nodes of a KafkaCluster; empty while no node is known."""
    status = cluster.get("status", {})
    rows = [_node_row(node, status.get("activeController")) for node in status.get("nodes", ())]
    return aligned([NODE_HEAD, *rows]) if rows else ""


def _node_row(node: dict[str, Any], active: int | None) -> list[str]:
    votes = "controller" in node.get("roles", ())
    standing = "active" if votes and node["id"] == active else "voter" if votes else ""
    numbers = [str(node.get(key, "")) for key in ("leaders", "underReplicated")]
    return [
        str(node["id"]),
        node.get("rack", ""),
        node["state"],
        *numbers,
        standing,
        str(node.get("restarts", "")),
        node.get("address", ""),
    ]


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Rows as text with columns of equal width; the last column is not padded."""
    widths = [max(len(row[index]) for row in rows) for index in range(len(rows[0]))]
    return "\n".join(
        GAP.join([*(text.ljust(width) for text, width in zip(row[:-1], widths, strict=False)), row[-1]]) for row in rows
    )


def cell(column: Column, document: dict[str, Any], now: datetime) -> str:
    """The text of one cell."""
    value = find(column.path, document)
    if value is None:
        return ""
    return age(str(value), now) if column.kind == "date" else str(value)


def find(path: str, value: Any) -> Any:
    """The value at a JSONPath, or None."""
    for field, key, wanted in _STEP.findall(path):
        if field:
            value = value.get(field) if isinstance(value, dict) else None
        else:
            value = next((item for item in value or () if item.get(key) == wanted), None)
        if value is None:
            return None
    return value


def age(since: str, now: datetime) -> str:
    """The time since a moment, in at most two units."""
    then = datetime.fromisoformat(since)
    seconds = max(0, int((now - then.astimezone(UTC)).total_seconds()))
    days, hours, minutes = seconds // 86_400, seconds // 3600, seconds // 60
    if days >= 2:
        return f"{days}d"
    if hours >= 2:
        return f"{hours}h"
    if minutes >= 10:
        return f"{minutes}m"
    if minutes >= 2:
        return f"{minutes}m{seconds % 60}s" if seconds % 60 else f"{minutes}m"
    return f"{seconds}s"
