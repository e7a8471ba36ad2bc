"""The answers to the questions of the audit, in plain Python, from each record that brokers have written.

A function answers the question of its name by the words at the head of that question's SQL, and returns its rows in
order. It reads happenings one by one; none of the tables in between, which the SQL reads, is made here.

Shares and demands are fractions without rounding. Cents are what a bill comes to without rounding, too: how they may
be rounded says `fair_parts`.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil, floor
from typing import Any, Final, NamedTuple, TypeVar

from kavka_audit.questions.query_runner import Settings
from kavka_broker.core.audit.changes import TRANSACTIONAL_ID
from kavka_broker.core.audit.events import Changed, Denied, Lifecycle, LoggedIn
from kavka_broker.core.audit.quota_entities import entity_words
from kavka_broker.core.audit.usage import OTHERS, Throttling, Use
from tests.unit.analytics.trail import DAY_MS, At

MINUTE_MS: Final = 60_000
BUCKET_MS: Final = 10 * MINUTE_MS
INCIDENT_MS: Final = 5 * MINUTE_MS
AHEAD_MS: Final = 5 * MINUTE_MS
STEP: Final = 65_536
ALL_OTHERS: Final = f"User:{OTHERS}"
OPERATOR: Final = "User:CN=operator,O=kavka.dev"
JUDGED: Final = "READ", "WRITE", "ALL"
K = TypeVar("K")
Row = tuple[Any, ...]
Rows = list[Row]


@dataclass(frozen=True, slots=True)
class Written:
    """A record that was taken in and not deleted since. `kind` is that of its entry, `dead` where it is none, and
    `missed` for `lost` records that the topic had deleted.
    """

    partition: int
    kind: str
    lost: int = 0
    node: int | None = None
    source: str | None = None
    sequence: int | None = None
    written_ms: int | None = None
    told: At | None = None


class Event(NamedTuple):
    """What a broker tells, by the names that answers have for it."""

    node: int
    source: str
    principal: str | None
    client_id: str | None
    address: str | None
    operation: str
    resource_type: str
    resource: str
    told: At

    @property
    def happening(self) -> Any:
        return self.told.happening


@dataclass(frozen=True)
class Known:
    """All that answers are made from. `deleted` has the last sequence of each chain that was deleted as it was old."""

    records: Sequence[Written]
    deleted: Mapping[str, int]
    tables: Mapping[str, Sequence[Mapping[str, Any]]]
    settings: Settings

    @cached_property
    def events(self) -> list[Event]:
        """Return each event once, however often its entry was written."""
        once = {(found.source, found.sequence): found for found in self.records if found.kind == "event"}
        return [_named(found) for found in once.values()]

    @cached_property
    def uses(self) -> list[Event]:
        """Return the uses of topics."""
        return [event for event in self.events if isinstance(event.happening, Use)]

    @cached_property
    def delays(self) -> list[Event]:
        """Return the delays by quotas."""
        return [event for event in self.events if isinstance(event.happening, Throttling)]

    def table(self, name: str) -> Sequence[Mapping[str, Any]]:
        """Return what the cluster has told."""
        return self.tables.get(name, ())

    def not_later(self, moment_ms: int) -> int:
        """Return a moment, or that of the run where it is in the future."""
        return min(moment_ms, self.settings.now_ms)


def _named(record: Written) -> Event:
    assert record.told is not None
    assert record.node is not None
    assert record.source is not None
    happening = record.told.happening
    place = record.node, record.source
    match happening:
        case Denied(principal, address, operation, kind, resource):
            return Event(*place, principal, None, address or None, operation, kind, resource, record.told)
        case LoggedIn(user, address, listener):
            name = None if user is None else f"User:{user}"
            return Event(*place, name, None, address or None, "LOGIN", "listener", listener, record.told)
        case Changed(principal, address, client, change):
            who = principal, client, address or None
            return Event(*place, *who, change.operation, change.resource_type, change.resource, record.told)
        case Lifecycle(operation, node):
            return Event(*place, None, None, None, operation, "node", node, record.told)
        case Use(principal, address, client, operation, topic):
            return Event(*place, principal, client, address or None, operation, "topic", topic, record.told)
        case Throttling(principal, address, client, kind, entity):
            words = entity_words(entity) if entity else OTHERS
            return Event(*place, principal, client, address or None, kind, "client_quota", words, record.told)
    raise AssertionError(happening)


def null_last(value: str | None) -> tuple[bool, str]:
    """Return what sorts a text, and NULL behind all texts."""
    return value is None, value or ""


def _by(events: Iterable[Event], key: Callable[[Event], K]) -> dict[K, list[Event]]:
    found = defaultdict[K, list[Event]](list)
    for event in events:
        found[key(event)].append(event)
    return found


def _bytes(events: Iterable[Event], operation: str | None = None) -> int:
    return sum(event.happening.size_bytes for event in events if operation in (None, event.operation))


def _last_ms(events: Iterable[Event]) -> int:
    return max(event.told.end_ms for event in events)


def audit_gaps(known: Known) -> Rows:
    """Return what the trail does not tell. A gap of none is one that has no number."""
    found = [*_gaps_of_chains(known), *_gaps_of_partitions(known), *_gaps_of_nodes(known)]
    unnamed = Counter[str]()
    for use in known.uses:
        unnamed[use.operation] += use.told.times * (use.resource == OTHERS)
    found += [("unnamed", f"{operation} {OTHERS}", times) for operation, times in unnamed.items() if times]
    return sorted(found, key=lambda row: (row[0] == "unended", *row[:2]))


def _gaps_of_chains(known: Known) -> Iterator[Row]:
    chains = defaultdict[str, dict[int, Written]](dict)
    for record in known.records:
        if record.source is not None and record.sequence is not None:
            chains[record.source].setdefault(record.sequence, record)
    for source, entries in chains.items():
        first = known.deleted.get(source, -1) + 1
        if missing := sum(sequence not in entries for sequence in range(first, max(entries))):
            yield "missing", source, missing
        if lost := sum(entry.lost for entry in entries.values() if entry.kind == "loss"):
            yield "lost", source, lost
    for source in _earlier_chains(chains):
        if not any(entry.kind == "end" for entry in chains[source].values()):
            yield "unended", source, 0


def _gaps_of_partitions(known: Known) -> Iterator[Row]:
    found = Counter[tuple[str, str]]()
    for record in known.records:
        if record.kind in ("dead", "missed"):
            found[record.kind, f"partition {record.partition}"] += record.lost if record.kind == "missed" else 1
    return ((*place, count) for place, count in found.items())


def _gaps_of_nodes(known: Known) -> Iterator[Row]:
    telling = _moments_by_node(known)
    for row in known.table("brokers"):
        if row["node"] not in telling:
            yield "silent", f"broker {row['node']}", 0
    for node, moments in telling.items():
        if (ahead_ms := max(moments) - known.settings.now_ms) > AHEAD_MS:
            yield "ahead", f"node {node}", ahead_ms // 1000


def _earlier_chains(chains: Mapping[str, Mapping[int, Written]]) -> Iterator[str]:
    """Give the chains behind which their node began another. Registrations of a broker are numbered, also where its
    clock was set back; which start of a controller was later, only times tell.
    """
    orders = defaultdict[tuple[str, bool], list[tuple[int, str]]](list)
    for source, entries in chains.items():
        node, _, start = source.partition("-")
        last_ms = max(entry.written_ms or 0 for entry in entries.values())
        orders[node, start.isdecimal()].append((int(start) if start.isdecimal() else last_ms, source))
    for found in orders.values():
        yield from (source for _, source in sorted(found)[:-1])


def _moments_by_node(known: Known) -> dict[int, list[int]]:
    """Return when the entries of each node were written."""
    found = defaultdict[int, list[int]](list)
    for record in known.records:
        if record.node is not None and record.written_ms is not None:
            found[record.node].append(record.written_ms)
    return found


def chargeback(known: Known) -> Rows:
    """Return the bill in parts by principals."""
    parts = _by(known.uses, lambda use: use.principal)
    return [(principal, *part) for principal, *part in _bill(known, parts)]


def _bill(known: Known, parts: Mapping[Any, Sequence[Event]]) -> Rows:
    """Return what each part has written and read, its share, and its cents without rounding."""
    total = _bytes(known.uses)
    rows = Rows()
    for name, uses in parts.items() if total else ():
        share = Fraction(_bytes(uses), total)
        rows.append((name, _bytes(uses, "WRITE"), _bytes(uses, "READ"), share, share * known.settings.bill_cents))
    return sorted(rows, key=lambda row: (-row[3], row[0]))


def fair_parts(exact: Sequence[Fraction], cents: Sequence[int], bill_cents: int) -> bool:
    """Return whether parts add up to the bill, and each is what it is without rounding, to the cent."""
    return sum(cents) == (bill_cents if exact else 0) and all(
        floor(part) <= found <= floor(part) + 1 for part, found in zip(exact, cents, strict=True)
    )


def label_chargeback(known: Known) -> Rows:
    """Return the bill in parts by the values of each label."""
    values = {(row["kind"], row["name"], row["label"]): row["value"] for row in known.table("labels")}
    cluster = {row["label"]: row["value"] for row in known.table("labels") if row["kind"] == "cluster"}

    def value(use: Event, label: str) -> str:
        of_principal = values.get(("principal", use.principal, label))
        of_topic = values.get(("topic", use.resource, label))
        return next((found for found in (of_principal, of_topic, cluster.get(label)) if found is not None), "")

    rows = Rows()
    for label in sorted({label for _, _, label in values}):
        parts = _by(known.uses, lambda use, label=label: value(use, label))  # type: ignore[misc]
        rows += [(label, *part) for part in _bill(known, parts)]
    return rows


def config_changes(known: Known) -> Rows:
    """Return the changes, the last first, and those by the operator behind all others."""
    rows = [
        (event.told.end_ms, *event[2:8], *_values(event.happening.change), event.principal == OPERATOR)
        for event in known.events
        if isinstance(event.happening, Changed) and event.resource_type != TRANSACTIONAL_ID
    ]
    by_others = sum(not row[-1] for row in rows)
    return sorted(((*row, by_others) for row in rows), key=change_order)


def change_order(row: Row) -> Row:
    """Return what the order of changes goes by; a kind of resource is not in it."""
    end_ms, principal, client, address, operation, _, resource, key, previous, value, is_operator, _ = row
    return (
        is_operator,
        -end_ms,
        principal,
        operation,
        resource,
        *map(null_last, (key, value, previous, client, address)),
    )


def _values(change: Any) -> tuple[str | None, str | None, str | None]:
    """Return the key, what it was before, and what it is."""
    return (change.key, change.previous, change.value) if change.key else (None, None, None)


def deletable_topics(known: Known) -> Rows:
    """Return the topics without use for so long, if every broker has told of as long."""
    limit_ms = known.settings.now_ms - known.settings.unused_days * DAY_MS
    brokers, telling = [row["node"] for row in known.table("brokers")], _moments_by_node(known)
    if not brokers or not all(node in telling and min(telling[node]) <= limit_ms for node in brokers):
        return []
    by_topic = _by(known.uses, lambda use: use.resource)
    if OTHERS in by_topic and _last_ms(by_topic[OTHERS]) > limit_ms:
        return []
    owners = {row["name"]: row["value"] for row in known.table("labels") if (row["kind"], row["label"]) == OWNER}
    rows = Rows()
    for row in known.table("topics"):
        uses = by_topic.get(row["topic"], [])
        if row["is_internal"] or (uses and known.not_later(_last_ms(uses)) > limit_ms):
            continue
        moments = [
            known.not_later(_last_ms(some)) if some else None
            for some in ([use for use in uses if use.operation == how] for how in ("WRITE", "READ"))
        ]
        _, last = max(((known.not_later(use.told.end_ms), use.principal) for use in uses), default=(0, None))
        rows.append((row["topic"], row["partitions"], row["bytes"], *moments, last, owners.get(row["topic"])))
    return sorted(rows, key=lambda row: (-row[2], row[0]))


OWNER: Final = ("topic", "owner")


def denied_operations(known: Known) -> Rows:
    """Return the refusals. What is told of several together is no use by the same principal."""
    used = {(use.principal, use.operation, use.resource) for use in known.uses if use.resource != OTHERS}
    refused = [
        event
        for event in known.events
        if isinstance(event.happening, Denied)
        or (isinstance(event.happening, LoggedIn) and event.happening.user is None)
    ]
    rows = Rows()
    for key, events in _by(refused, lambda event: event[2:3] + event[5:8] + event[4:5]).items():
        principal, operation, kind, resource, _ = key
        moments = min(event.told.start_ms for event in events), _last_ms(events)
        was_allowed = kind == "topic" and (principal, operation, resource) in used
        rows.append((*key, sum(event.told.times for event in events), *moments, was_allowed))
    return sorted(rows, key=lambda row: (-row[5], null_last(row[0]), row[1], row[3], null_last(row[4]), row[2]))


def first_access(known: Known) -> Rows:
    """Return the first uses of each topic by each principal, for writing and for reading, the last one first."""
    limit_ms = known.settings.now_ms - known.settings.new_days * DAY_MS
    goes_back = any(event.told.start_ms <= limit_ms for event in known.events)
    rows = Rows()
    for key, uses in _by(known.uses, lambda use: (use.principal, use.operation, use.resource)).items():
        first_ms = min(use.told.start_ms for use in uses)
        clients = [(use.address or "", use.client_id or "") for use in uses if use.told.start_ms == first_ms]
        rows.append((*key, first_ms, *min(clients), goes_back and first_ms > limit_ms))
    return sorted(rows, key=lambda row: (-row[3], *row[:3]))


def hot_partitions(known: Known) -> Rows:
    """Return the partitions with more than twice the mean of their topic."""
    records = defaultdict[str, list[int]](list)
    for row in known.table("partitions"):
        records[row["topic"]].append(row["records"])
    rows = Rows()
    for row in known.table("partitions"):
        mean = Fraction(sum(records[row["topic"]]), len(records[row["topic"]]))
        if len(records[row["topic"]]) > 1 and row["records"] > 2 * mean and row["records"] >= 1000:
            rows.append((row["topic"], row["partition"], row["leader"], row["records"], row["records"] / mean))
    return sorted(rows, key=lambda row: (-row[4], *row[:2]))


def lineage(known: Known) -> Rows:
    """Return the pairs of a writer and a reader of the same topic; of a topic the fifty of each that moved most."""
    rows = Rows()
    for topic, uses in _by(known.uses, lambda use: use.resource).items():
        sides = [_most(use for use in uses if use.operation == how) for how in ("WRITE", "READ")]
        rows += [
            (topic, writer, reader, _bytes(written), _bytes(read), known.not_later(_last_ms(read)))
            for writer, written in sides[0]
            for reader, read in sides[1]
        ]
    return sorted(rows, key=lambda row: (-row[4], *row[:3]))


def _most(uses: Iterable[Event]) -> list[tuple[str | None, list[Event]]]:
    found = _by(uses, lambda use: use.principal)
    return sorted(found.items(), key=lambda part: (-_bytes(part[1]), part[0]))[:50]


def quota_recommendations(known: Known) -> Rows:
    """Return the limits that would have fitted, by the demand at each broker in each minute."""
    held = _by(
        (delay for delay in known.delays if delay.happening.quota_type in MOVES),
        lambda delay: (delay.resource, delay.happening.quota_type),
    )
    rows = Rows()
    for (entity, kind), delays in held.items():
        places = _by(delays, lambda delay: (delay.source, delay.told.start_ms // MINUTE_MS))
        found = {place: _demand(known, place, kind, some) for place, some in places.items()}
        measured = {place: demand for place, demand in found.items() if demand is not None}
        if not measured:
            continue
        told = [delay for place in measured for delay in places[place] if _moved(known, place, kind, delay)]
        rate, demand = (_percentile(95, [both[side] for both in measured.values()]) for side in (0, 1))
        limit = max(delay.happening.limit for delay in told)
        fitting = max(limit, ceil(demand * Fraction(13, 10) / STEP) * STEP)
        _, node = max((both[1], places[place][0].node) for place, both in measured.items())
        parts = max((_compact(delay.happening.entity) for delay in told), key=null_last)
        rows.append((entity, kind, limit, rate, demand, fitting, len(measured), node, parts))
    return sorted(rows, key=lambda row: (-row[4], *row[:2]))


MOVES: Final = {"produce": "WRITE", "fetch": "READ"}
"""What a quota of this type holds back."""
Place = tuple[str, int]
"""A chain, which is of one broker, and a minute."""


def _moved(known: Known, place: Place, kind: str, delay: Event) -> list[Event]:
    """Return what a client that is held back has moved in that minute."""
    return [
        use
        for use in known.uses
        if (use.source, use.told.start_ms // MINUTE_MS) == place
        and (use.principal, use.client_id, use.operation) == (delay.principal, delay.client_id, MOVES[kind])
    ]


def _demand(known: Known, place: Place, kind: str, delays: Sequence[Event]) -> tuple[Fraction, Fraction] | None:
    """Return the rate and the demand of all clients that an entity's quota held back; None where nothing was moved."""
    rate, demand, is_measured = Fraction(), Fraction(), False
    for some in _by(delays, lambda delay: (delay.principal, delay.client_id)).values():
        if uses := _moved(known, place, kind, some[0]):
            span_ms = max(1_000, _last_ms(uses) - min(use.told.start_ms for use in uses))
            held_ms = sum(delay.happening.throttle_time_ms for delay in some)
            of_client = Fraction(_bytes(uses) * 1_000, span_ms)
            rate, is_measured = rate + of_client, True
            demand += of_client / max(1 - Fraction(held_ms, span_ms), Fraction(1, 4))
    return (rate, demand) if is_measured else None


def _percentile(percent: int, values: Iterable[Fraction]) -> Fraction:
    """Return the percentile, between the two values beside it."""
    ordered = sorted(values)
    place = Fraction(percent * (len(ordered) - 1), 100)
    below = ordered[floor(place)]
    return below + (ordered[ceil(place)] - below) * (place - floor(place))


def _compact(entity: str) -> str | None:
    return json.dumps(json.loads(entity), ensure_ascii=False, separators=(",", ":")) if entity else None


def throttle_incidents(known: Known) -> Rows:
    """Return the incidents of each client and quota. The limit is that of the last delay."""
    rows = Rows()
    for key, delays in _by(known.delays, lambda d: (*d[2:4], d.happening.quota_type, d.resource)).items():
        incidents = list[list[Event]]()
        for delay in sorted(delays, key=lambda delay: delay.told[1:3]):
            if not incidents or delay.told.start_ms - _last_ms(incidents[-1]) >= INCIDENT_MS:
                incidents.append([])
            incidents[-1].append(delay)
        for incident in incidents:
            _, limit = max((delay.told.end_ms, delay.happening.limit) for delay in incident)
            held = [delay.happening.throttle_time_ms for delay in incident]
            longest = max(delay.happening.throttle_time_ms_max for delay in incident)
            times = incident[0].told.start_ms, _last_ms(incident), sum(delay.told.times for delay in incident)
            rows.append((*key, limit, *times, sum(held), longest))
    return sorted(rows, key=lambda row: (-row[8], row[5], row[0], null_last(row[1]), null_last(row[2]), row[3]))


def top_talkers(known: Known) -> Rows:
    """Return what each client has moved of each topic. Records are not counted of what is read."""
    total, rows = _bytes(known.uses), Rows()
    for key, uses in _by(known.uses, lambda use: (*use[2:4], use.operation, use.resource)).items():
        counts = [use.happening.records for use in uses if use.happening.records is not None]
        moved, records = _bytes(uses), sum(counts) if counts else None
        rows.append((*key, moved, records, sum(use.told.times for use in uses), Fraction(moved, total)))
    return sorted(rows, key=lambda row: (-row[4], row[0], null_last(row[1]), *row[2:4]))


def traffic(known: Known) -> Rows:
    """Return what was moved in each bucket of which anything is told, the newest first."""
    rows = Rows()
    for bucket_ms, events in _by(known.events, lambda event: _bucket_ms(known, event)).items():
        uses = [event for event in events if isinstance(event.happening, Use)]
        written = sum(use.happening.records or 0 for use in uses)
        denied = sum(event.told.times for event in events if _is_refused(event))
        held_ms = sum(e.happening.throttle_time_ms for e in events if isinstance(e.happening, Throttling))
        rows.append((bucket_ms, _bytes(uses, "WRITE"), _bytes(uses, "READ"), written, denied, held_ms))
    totals = _bytes(known.uses, "WRITE"), _bytes(known.uses, "READ")
    return [(*row, *totals) for row in sorted(rows, reverse=True)]


def _bucket_ms(known: Known, event: Event) -> int:
    moment_ms = known.not_later(event.told.start_ms)
    return moment_ms - moment_ms % BUCKET_MS


def _is_refused(event: Event) -> bool:
    return isinstance(event.happening, Denied) or (isinstance(event.happening, LoggedIn) and not event.principal)


def unused_grants(known: Known) -> Rows:
    """Return the rules that no use needed, or may have needed."""
    rows = [
        (rule["principal"], rule["host"], rule["operation"], rule["pattern_type"], rule["resource"])
        for rule in known.table("grants")
        if (rule["permission"], rule["resource_type"]) == ("ALLOW", "topic") and rule["operation"] in JUDGED
        if not any(_may_need(use, rule) for use in known.uses)
    ]
    return sorted(rows, key=lambda row: (row[0], row[4], row[2], row[1], row[3]))


def _may_need(use: Event, rule: Mapping[str, Any]) -> bool:
    """Return whether a use is one that a rule allows. A range of addresses is taken for every address."""
    is_unnamed = use.principal == ALL_OTHERS
    whose = is_unnamed or rule["principal"] in ("User:*", use.principal)
    whence = is_unnamed or rule["host"] in ("*", use.address) or "/" in rule["host"]
    how = rule["operation"] in ("ALL", use.operation)
    if rule["pattern_type"] == "LITERAL":
        what = rule["resource"] in ("*", use.resource)
    else:
        what = use.resource.startswith(rule["resource"])
    return whose and whence and how and (what or use.resource == OTHERS)


def completeness(known: Known) -> Rows:
    """Return the verdicts, as of these days nothing new was told: what is wrong first, the newest first."""
    rows = [tuple(row.values()) for row in known.table("verdicts")]
    return sorted(rows, key=lambda row: (not (row[9] and row[5] + row[6]), -row[1], row[0], *row[2:4]))


def topic_completeness(known: Known) -> Rows:
    """Return the closed buckets of the last day together."""
    lately = defaultdict[Row, list[Mapping[str, Any]]](list)
    for row in known.table("verdicts"):
        if row["is_closed"] and row["bucket_ms"] >= known.settings.now_ms - DAY_MS:
            lately[row["topic"], row["tier"], row["name"]].append(row)
    rows = Rows()
    for key, found in lately.items():
        sums = [sum(row[name] for row in found) for name in ("expected", "missing", "duplicates", "late")]
        share = 1 - Fraction(sums[1], sums[0]) if sums[0] else Fraction(1)
        wrong, worst_ms = max((row["missing"] + row["duplicates"], row["bucket_ms"]) for row in found)
        rows.append((*key, share, *sums, worst_ms if wrong else None))
    return sorted(rows, key=lambda row: (row[3], -row[6], *row[:3]))


ORACLE: Final[Mapping[str, Callable[[Known], Rows]]] = {
    question.__name__: question
    for question in (
        audit_gaps,
        chargeback,
        completeness,
        config_changes,
        deletable_topics,
        denied_operations,
        first_access,
        hot_partitions,
        label_chargeback,
        lineage,
        quota_recommendations,
        throttle_incidents,
        top_talkers,
        topic_completeness,
        traffic,
        unused_grants,
    )
}
"""Each question by its name."""
