"""Makes what each place on the page shows, from the overview of resources: facts and tables. Pure.

Places are those of `kavka console`: the clusters, and of a cluster its topics, quotas, nodes, roll and audit.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.api.kinds import AnyResource
from kavka_operator.api.stored_resources import UnreadableError, resource_from
from kavka_operator.domain import units
from kavka_operator.domain.quota_entities import limit_text
from kavka_operator.platform.kubernetes.live.resource_cache import cluster_of, key_of_document
from kavka_operator.process.console.overview import NOT_SEEN, overview
from kavka_operator.web_page import cells
from kavka_operator.web_page.documents import UNKNOWN, facts, sheet_document
from kavka_operator.web_page.rolls import nodes_sheet, roll_view
from kavka_operator.web_page.sheet import UNTOLD, Cell, Column, Row, Sheet, Tone

CLUSTERS: Final = "clusters"
NO_STATUS: Final = "The status of this KafkaCluster is not known here."
CLUSTER_COLUMNS = (
    Column("CLUSTER", is_flexible=True),
    Column("STATE", is_ascending=False),
    Column("BROKERS READY", is_number=True),
    Column("PARTITIONS", is_number=True),
    Column("UNDER-REPLICATED", is_number=True),
    Column("TOPICS", is_number=True),
    Column("QUOTAS", is_number=True),
    Column("ROLL"),
    Column("AUDIT"),
    Column("MESSAGE", is_flexible=True, is_sorting=False),
)
TOPIC_COLUMNS = (
    Column("TOPIC", is_flexible=True),
    Column("STATE", is_ascending=False),
    Column("PARTITIONS", is_number=True),
    Column("REPLICAS", is_number=True),
    Column("UNDER-REPLICATED", is_number=True),
    Column("OFFLINE", is_number=True),
    Column("MESSAGE", is_flexible=True, is_sorting=False),
)
QUOTA_COLUMNS = (
    Column("QUOTA", is_flexible=True),
    Column("ENTITY", is_flexible=True),
    Column("STATE", is_ascending=False),
    Column("LIMIT PER BROKER", is_flexible=True, is_sorting=False),
    Column("USED", is_number=True),
    Column("PRODUCED IN ALL", is_number=True),
    Column("FETCHED IN ALL", is_number=True),
    Column("THROTTLED", is_number=True),
    Column("MESSAGE", is_flexible=True, is_sorting=False),
)
ANSWERS = (
    Column("QUESTION", is_flexible=True, is_sorting=False),
    Column("WEIGHT", is_ascending=False),
    Column("ROWS", is_number=True),
)
RUN_TONES: Final = {"Succeeded": "good", "Failed": "bad", "Refused": "bad"}
WEIGHTS: Final[Mapping[str, tuple[str, Tone]]] = {
    "wrong": ("5", Tone.BAD),
    "look": ("4", Tone.NEAR),
    "tidy up": ("3", Tone.NEAR),
    "no data": ("2", Tone.FAINT),
}
"""Of answers, with what they are sorted by."""

Document = Mapping[str, Any]
Shown = dict[str, Any]


def view_document(documents: Iterable[Document], cluster: str | None, view: str) -> Shown:
    """Return a place on the page: the clusters, or a view of one, NAMESPACE/NAME. Raises LookupError where there is no
    such place.
    """
    if cluster is None:
        return _clusters([*documents])
    of_cluster = [document for document in documents if "/".join(cluster_of(document)) == cluster]
    if not of_cluster or view not in VIEWS:
        raise LookupError(cluster)
    return {"untold": [], **VIEWS[view](of_cluster)}


def _clusters(documents: list[Document]) -> Shown:
    """A row for each cluster, also for one of which only topics or quotas are shown to this visitor."""
    found = overview(documents)
    rows = {f"{row['namespace']}/{row['name']}": _cluster_row(row) for row in found["clusters"]}
    if not found["clustersOmitted"]:
        rows |= {name: _unseen(name) for name in {"/".join(cluster_of(document)) for document in documents} - {*rows}}
    sheet = Sheet(CLUSTERS, CLUSTER_COLUMNS, tuple(rows.values()), 1)
    shown = sheet_document(sheet, "Clusters", {name: (name, "topics") for name in rows})
    return {"facts": [], "untold": [], "sheets": [{**shown, "omitted": found["clustersOmitted"]}]}


def _cluster_row(cluster: Shown) -> Row:
    name, roll, audit = f"{cluster['namespace']}/{cluster['name']}", cluster["roll"], cluster["audit"]
    ready, brokers = cluster["readyBrokers"], cluster["brokers"]
    tone = Tone.BAD if ready < brokers else Tone.PLAIN
    return Row(
        name,
        (
            cells.name(name),
            _state(cluster),
            Cell(f"{ready} of {brokers}", ready, tone) if brokers else UNTOLD,
            cells.number(cluster["partitions"]),
            _behind(cluster["underReplicated"]),
            cells.number(cluster["topics"]),
            cells.number(cluster["quotas"]),
            Cell(f"{roll['done']} of {roll['total']}", "1", Tone.NEAR) if roll else Cell("none", "0", Tone.FAINT),
            Cell(audit["state"], audit["state"], _tone(RUN_TONES.get(audit["state"], "warn"))) if audit else Cell(""),
            Cell(cluster["ready"].get("message", "")),
        ),
    )


def _unseen(name: str) -> Row:
    return Row(name, (cells.name(name), *(UNTOLD,) * (len(CLUSTER_COLUMNS) - 2), Cell(NO_STATUS)))


def _state(row: Shown) -> Cell:
    """The state of a resource; those that need a look come first, of topics those without leaders before all."""
    ready = row["ready"]
    urgent = "5" if row.get("offline") else "4" if row.get("underReplicated") else ""
    if ready["status"] == "True":
        return Cell("Ready", urgent or "0", Tone.GOOD)
    said = ready["reason"] or ready["status"]
    if said == NOT_SEEN:
        return Cell("not seen", urgent or "1", Tone.FAINT)
    order, tone = ("3", Tone.BAD) if row["isStalled"] else ("2", Tone.NEAR)
    return Cell(said, f"{urgent or order} {said}", tone)


def _behind(value: int) -> Cell:
    return Cell(units.count(value), float(value), Tone.NEAR if value else Tone.FAINT)


def _tone(name: str) -> Tone:
    return {"good": Tone.GOOD, "bad": Tone.BAD}.get(name, Tone.NEAR)


def _facts(of_cluster: list[Document]) -> list[Shown]:
    """The facts that stand above the views of a cluster; none where its KafkaCluster is not shown."""
    found = overview(document for document in of_cluster if key_of_document(document)[0] == "KafkaCluster")["clusters"]
    if not found:
        return []
    cluster = found[0]
    ready, brokers, behind = cluster["readyBrokers"], cluster["brokers"], cluster["underReplicated"]
    state = _state(cluster)
    is_ready = cluster["ready"]["status"] == "True"
    return facts(
        (
            ("State", state.text, "good" if is_ready else "warn"),
            ("Brokers ready", f"{ready} of {brokers}" if brokers else UNKNOWN, "bad" if ready < brokers else ""),
            ("Partitions", units.count(cluster["partitions"]), ""),
            ("Under-replicated", units.count(behind), "warn" if behind else ""),
        )
    )


def _topics(of_cluster: list[Document]) -> Shown:
    found = overview(of_cluster)
    rows = tuple(_topic_row(row) for row in found["topics"])
    shown = sheet_document(Sheet("resources-of-topics", TOPIC_COLUMNS, rows, 1), "Topics")
    return {"facts": _facts(of_cluster), "sheets": [{**shown, "omitted": found["topicsOmitted"]}]}


def _topic_row(topic: Shown) -> Row:
    moving = "replicas move; " if topic["isMoving"] else ""
    return Row(
        f"{topic['namespace']}/{topic['name']}",
        (
            cells.name(topic["topic"] or topic["name"]),
            _state(topic),
            cells.number(topic["partitions"]),
            cells.number(topic["replicationFactor"]),
            _behind(topic["underReplicated"]),
            cells.alarming(topic["offline"]),
            Cell(moving + topic["ready"].get("message", "")),
        ),
    )


def _quotas(of_cluster: list[Document]) -> Shown:
    found = overview(of_cluster)
    rows = tuple(_quota_row(row) for row in found["quotas"])
    shown = sheet_document(Sheet("resources-of-quotas", QUOTA_COLUMNS, rows, 4), "Quotas")
    return {"facts": _facts(of_cluster), "sheets": [{**shown, "omitted": found["quotasOmitted"]}]}


def _quota_row(quota: Shown) -> Row:
    is_seen, percent = quota["isSeen"], quota["usedPercent"]
    return Row(
        f"{quota['namespace']}/{quota['name']}",
        (
            cells.name(quota["name"]),
            Cell(quota["entity"], quota["entity"]),
            _state(quota),
            Cell(", ".join(f"{key}={limit_text(key, value)}" for key, value in quota["limits"].items())),
            cells.usage(percent / 100 if percent >= 0 else None, is_limited=True),
            cells.number(quota["produced"] if is_seen else None, units.rate),
            cells.number(quota["fetched"] if is_seen else None, units.rate),
            cells.number(quota["throttledSeconds"] if is_seen else None, lambda value: f"{value} s"),
            Cell(quota["ready"].get("message", "")),
        ),
    )


def _resource(of_cluster: list[Document]) -> KafkaCluster | None:
    """The KafkaCluster with its status; None where it is not shown, or cannot be understood."""
    for document in of_cluster:
        if key_of_document(document)[0] != "KafkaCluster":
            continue
        try:
            found: AnyResource = resource_from(dict(document))
        except UnreadableError:
            return None
        return found if isinstance(found, KafkaCluster) else None
    return None


def _unknown(name: str, title: str) -> Shown:
    sheet = Sheet(name, (Column("NODE"),), (), 0, NO_STATUS)
    return {"facts": [], "sheets": [sheet_document(sheet, title)]}


def _nodes(of_cluster: list[Document]) -> Shown:
    cluster = _resource(of_cluster)
    if cluster is None:
        return _unknown("nodes-of-roll", "Nodes")
    return {"facts": _facts(of_cluster), "sheets": [sheet_document(nodes_sheet(cluster), "Nodes")]}


def _roll(of_cluster: list[Document]) -> Shown:
    cluster = _resource(of_cluster)
    return _unknown("waits", "Roll") if cluster is None else roll_view(cluster, is_running=True)


def _audit(of_cluster: list[Document]) -> Shown:
    """The newest run over the audit trail, and the answers of the last one that succeeded."""
    found = overview(document for document in of_cluster if key_of_document(document)[0] == "KafkaCluster")["clusters"]
    audit = found[0]["audit"] if found else None
    if audit is None:
        sheet = Sheet("weights", ANSWERS, (), 1, "No run over the audit trail is known of this cluster.")
        return {"facts": [], "sheets": [sheet_document(sheet, "Answers of the audit trail")]}
    rows = tuple(_answer_row(at, line) for at, line in enumerate(audit["answers"]))
    note = " ".join(part for part in (audit["message"], audit["chains"]) if part)
    if rows:
        note += " Who is in the rows is with the files of the runs, which the operator cannot read."
    told = (
        ("Newest run", audit["state"], RUN_TONES.get(audit["state"], "warn")),
        ("It began", audit["startTime"], ""),
        ("Report of", audit["successTime"], ""),
        ("Answers of", audit["summaryTime"], ""),
    )
    sheet = Sheet("weights", ANSWERS, rows, 1, note.strip())
    shown = sheet_document(sheet, "Answers of the audit trail")
    return {"facts": facts(fact for fact in told if fact[1]), "sheets": [shown]}


def _answer_row(at: int, line: Shown) -> Row:
    order, tone = WEIGHTS.get(line["weight"], ("1", Tone.PLAIN))
    weight = Cell(line["weight"], order, tone)
    return Row(f"{at:03}", (Cell(line["question"], at, Tone.NAME), weight, cells.number(line["rows"])))


VIEWS: Final[Mapping[str, Callable[[list[Document]], Shown]]] = {
    "topics": _topics,
    "quotas": _quotas,
    "nodes": _nodes,
    "roll": _roll,
    "audit": _audit,
}
