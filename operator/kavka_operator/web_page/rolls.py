"""Makes the view of a roll: how far it is, what it waits for, and what is unavailable meanwhile. Pure.

It is read from the status of the KafkaCluster, which the operator writes.
"""

from datetime import datetime
from typing import Final

from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.api.cluster_status import NodeStatus, RolloutStatus
from kavka_operator.domain import units
from kavka_operator.web_page import cells
from kavka_operator.web_page.documents import Document, facts, sheet_document
from kavka_operator.web_page.sheet import UNTOLD, Cell, Column, Row, Sheet, Tone

UNKNOWN: Final = "unknown"
NOT_OURS: Final = (
    "What a roll waits for is written by Kavka's operator. This console knows the cluster by its addresses alone, so"
    " that rolls of it are unknown here."
)
WAITS = (Column("WAITS FOR", is_flexible=True, is_sorting=False),)
RISKS = (Column("UNAVAILABLE MEANWHILE", is_flexible=True, is_sorting=False),)
NODES = (
    Column("NODE", is_number=True, is_ascending=True),
    Column("STATE"),
    Column("RACK"),
    Column("ROLES"),
    Column("LEADERS", is_number=True),
    Column("UNDER-REPLICATED", is_number=True),
    Column("RESTARTS", is_number=True),
)
TONES: Final = {"Running": Tone.GOOD, "Failed": Tone.BAD, "Stopped": Tone.BAD}


def unknown_roll() -> Document:
    """Return the view of a cluster whose resource is not known here."""
    sheet = Sheet("waits", WAITS, (), 0, NOT_OURS)
    return {"facts": [], "sheets": [sheet_document(sheet, "Roll")], "untold": []}


def roll_view(cluster: KafkaCluster, *, is_running: bool) -> Document:
    """Return the view of a cluster's roll; where it does not run, its status is old."""
    roll = cluster.status.roll
    waits = _waits(cluster, roll)
    nothing = "" if waits else "It waits for nothing."
    note = nothing if is_running else "The cluster does not run; this is what was seen last."
    sheets = [sheet_document(_lines("waits", WAITS, waits, note), "What it waits for")]
    if roll is not None and roll.at_risk:
        sheets.append(sheet_document(_lines("risks", RISKS, list(roll.at_risk)), "Partitions at risk"))
    sheets.append(sheet_document(nodes_sheet(cluster), "Nodes"))
    return {"facts": _facts(cluster, roll), "sheets": sheets, "untold": [], "roll": _progress(roll)}


def nodes_sheet(cluster: KafkaCluster) -> Sheet:
    """The sheet of a cluster's nodes."""
    rows = tuple(_node_row(node, cluster.status.roll) for node in cluster.status.nodes)
    return Sheet("nodes-of-roll", NODES, rows, 0)


def _facts(cluster: KafkaCluster, roll: RolloutStatus | None) -> list[Document]:
    status, ready = cluster.status, cluster.status.condition("Ready")
    state = UNKNOWN if ready is None else "Ready" if ready.status == "True" else ready.reason
    tone = "good" if ready is not None and ready.status == "True" else "warn"
    found = [("State", state, tone)]
    if roll is not None and roll.total:
        found.append(("Restarted", f"{roll.done} of {roll.total}", ""))
        found.append(("Now", ", ".join(f"node {node}" for node in roll.current) or "none", ""))
        found.append(("Plan", roll.plan or UNKNOWN, ""))
        if roll.blocked_since is not None:
            found.append(("Waits since", _clock(roll.blocked_since), "warn"))
        if roll.resume_time is not None:
            found.append(("Goes on at", _clock(roll.resume_time), ""))
    else:
        found.append(("Roll", "none is on", ""))
    if (last := status.last_rollout) is not None:
        ended = _clock(last.end_time) if last.end_time is not None else UNKNOWN
        found.append(("Last roll", f"{last.nodes} nodes, ended {ended}", ""))
    return facts(found)


def _clock(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"


def _progress(roll: RolloutStatus | None) -> Document | None:
    return {"done": roll.done, "total": roll.total} if roll is not None and roll.total else None


def _waits(cluster: KafkaCluster, roll: RolloutStatus | None) -> list[str]:
    """Return what holds a roll back, and the messages of the conditions that are about one."""
    lines = list(roll.blocked_by) if roll is not None else []
    about = (cluster.status.condition(kind) for kind in ("RolloutPending", "Stalled"))
    lines += [f"{found.reason}: {found.message}" for found in about if found is not None and found.status == "True"]
    ready = cluster.status.condition("Ready")
    if ready is not None and ready.status != "True":
        lines.append(f"{ready.reason}: {ready.message}")
    return list(dict.fromkeys(lines))


def _lines(name: str, columns: tuple[Column, ...], lines: list[str], note: str = "") -> Sheet:
    rows = tuple(Row(f"{at:04}", (Cell(units.printable(line), f"{at:04}"),)) for at, line in enumerate(lines))
    return Sheet(name, columns, rows, 0, note)


def _node_row(node: NodeStatus, roll: RolloutStatus | None) -> Row:
    is_current = roll is not None and node.id in roll.current
    tone = Tone.NEAR if is_current else TONES.get(node.state, Tone.NEAR)
    return Row(
        f"{node.id:06}",
        (
            Cell(str(node.id), node.id, Tone.NAME),
            Cell(node.state, node.state, tone),
            Cell(node.rack or "", node.rack or ""),
            Cell(text := ", ".join(node.roles), text),
            *(UNTOLD if value is None else cells.number(value) for value in (node.leaders, node.under_replicated)),
            cells.number(node.restarts or 0),
        ),
    )
