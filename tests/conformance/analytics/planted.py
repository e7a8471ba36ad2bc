"""Records of an audit topic by chance, of each kind and each defect, and a cluster beside them."""

import json
import random
from collections.abc import Sequence
from typing import Any

from kavka_audit.lake.ingest import Range
from kavka_broker.core.audit.changes import Change
from kavka_broker.core.audit.events import Changed, Denied, Happening, LoggedIn
from kavka_broker.core.audit.quota_entities import entity_key
from kavka_broker.core.audit.usage import Throttling, Use
from kavka_broker.core.quota.entity import DEFAULT, Entity
from tests.conformance.analytics.spark_frames import java_of
from tests.unit.analytics.books import BUCKET_MS, Books, Logged, Told
from tests.unit.analytics.trail import DAY_MS, NOW_MS, At, Kept, Record, chain_of

NAMES = ("alice", "bob", "carol", "ü'\"--", "<default>", "a\\b", "tab\there", "\x1f", "\ud83d\ude00", "")
TOPICS = ("orders", "bills-eu", "bills-us", "never", "t")
ADDRESSES = ("10.0.0.1", "10.0.0.2", "::1", "")
CLIENTS = ("app", "loader", "", "ü")
LIMITS = (1024.0, 100_000.0, 1.5, 12_345_678.0, 0.0)
Tables = dict[str, list[dict[str, object]]]


class Drawn:
    """What a seed draws."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)

    def trail(self, events: int) -> Kept:
        """Two brokers, one of which begins twice; entries that are missing, losses, dead records and doubled ones."""
        kept, chance = Kept(), self.chance
        for node, epoch in ((1, 1), (2, 1), (2, 2)):
            happenings = [self._at() for _ in range(events // 3)]
            chain, entries = chain_of(node, happenings, epoch)
            if chance.random() < 0.7:
                entries.append(chain.loss(chance.randrange(1, 9), NOW_MS))
            if chance.random() < 0.7:
                entries.append(chain.end(NOW_MS))
            for _ in range(2):
                place = chance.randrange(len(entries))
                del entries[place : place + chance.randrange(3)]
            kept.write(node - 1, entries)
            kept.write(node - 1, entries[:1])
            self._spoil(kept, node - 1)
        return kept

    def _spoil(self, kept: Kept, partition: int) -> None:
        """Records with a defect each, of those that are there."""
        for record in self.chance.sample(kept.records[partition], min(12, len(kept.records[partition]))):
            headers, value = self.spoilt(record)
            kept.add(partition, headers, value)

    def spoilt(self, record: Record) -> tuple[Sequence[tuple[str, bytes | None]], bytes | None]:
        """A record with one defect, or with one oddity that is none."""
        headers, value, chance = list(record.headers), record.value or b"", self.chance
        if not headers:  # spoilt before, as two brokers write into one partition
            return headers, value
        place = chance.randrange(len(headers))
        match chance.randrange(9):
            case 0:
                headers[place] = (headers[place][0], chance.choice([None, b"", b"-1", b"7\n", b"\xff", b"9" * 19]))
            case 1:
                del headers[place]
            case 2:
                chance.shuffle(headers)
            case 3:
                headers.append(headers[place])
            case 4:
                value = value.replace(b",", b", ", 1)
            case 5:
                value = value[: chance.randrange(len(value) + 1)]
            case 6:
                value = self._altered(value)
            case 7:
                headers = []
            case _:
                return headers, chance.choice([None, b"", b"3", b"[]", b"{}", b"null", b"\xff\xfe", value + b" x"])
        return headers, value

    def _altered(self, value: bytes) -> bytes:
        """The event with another value in one of its fields, at some depth."""
        try:
            event: Any = json.loads(value)
        except ValueError:
            return value
        at = event
        while True:
            keys = list(at) if isinstance(at, dict) else range(len(at))
            if not keys:
                return value
            key = self.chance.choice(keys)
            if isinstance(at[key], dict | list) and at[key] and self.chance.random() < 0.7:
                at = at[key]
                continue
            odd: list[Any] = [
                None,
                True,
                -1,
                1.5,
                "3",
                "",
                [],
                {},
                2**31,
                2**63,
                -(2**63),
                10**400,
                "\ud800",
                3002,
                "kafka listener X",
            ]
            at[key] = self.chance.choice(odd)
            return json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode(errors="surrogatepass")

    def _at(self) -> At:
        chance = self.chance
        end_ms = NOW_MS - chance.choice((0, 1, chance.randrange(3_600_000), chance.randrange(90 * DAY_MS)))
        start_ms = end_ms - chance.choice((0, 1_000, 60_000, 60_000))
        return At(self._happening(), start_ms, end_ms, chance.randrange(1, 9))

    def _happening(self) -> Happening:
        chance = self.chance
        who, address, client = f"User:{chance.choice(NAMES)}", chance.choice(ADDRESSES), chance.choice(CLIENTS)
        topic, operation = chance.choice(TOPICS), chance.choice(("READ", "WRITE"))
        match chance.randrange(8):
            case 0:
                entity = entity_key(
                    Entity(chance.choice((None, DEFAULT, "alice", 'q"')), chance.choice(("app", DEFAULT)))
                )
                kind = chance.choice(("produce", "fetch", "request"))
                delay_ms = chance.randrange(1, 50_000)
                return Throttling(who, address, client, kind, entity, chance.choice(LIMITS), delay_ms, delay_ms // 2)
            case 1:
                return Denied(who, address, operation, "topic", topic)
            case 2:
                return LoggedIn(chance.choice((None, *NAMES)), address, chance.choice(("SASL", "INTERNAL", "")))
            case 3:
                values = chance.choice((None, "8", "a\nb")), chance.choice((None, "9"))
                key = chance.choice(("", "retention.ms"))
                return Changed(who, address, client, Change("ALTER_CONFIGS", "topic", topic, key, *values))
        size = chance.choice((0, 1, chance.randrange(10**6), chance.randrange(10**12)))
        records = chance.randrange(1, 1_000) if operation == "WRITE" else None
        return Use(who, address, client, operation, topic, size, records)

    def tables(self) -> Tables:
        """A cluster: topics, rules and partitions, of which some are in the trail."""
        chance = self.chance
        return {
            "brokers": [{"node": node} for node in (1, 2, 3)[: chance.randrange(4)]],
            "topics": [
                {"topic": name, "partitions": 2, "bytes": chance.choice((None, 0, 5 << 20)), "is_internal": name == "t"}
                for name in (*TOPICS, "unknown")
            ],
            "partitions": [
                {"topic": name, "partition": index, "leader": 1, "records": chance.randrange(5_000) ** 2}
                for name in TOPICS
                for index in range(4)
            ],
            "grants": [self._grant() for _ in range(40)],
            "labels": [
                {"kind": kind, "name": name, "label": "owner", "value": chance.choice(("shop", "sums"))}
                for kind, names in (("topic", TOPICS[:2]), ("principal", ("User:alice",)), ("cluster", ("",)))
                for name in names
            ],
        }

    def books(self) -> Books:
        """Two producers and two groups that tell of topics in which some records are missing, and some are twice."""
        books, chance = Books(), self.chance
        for topic in ("orders", "t"):
            log = books.with_log(topic)
            for partition in range(2):
                log.fill(partition, [BUCKET_MS + chance.randrange(-2, 3) * 600_000 for _ in range(40)])
            for teller in (books.teller("producer", name, f"{name} {topic}") for name in ("one", "two")):
                self._tell(teller, log)
            for teller in (books.teller("consumer", name, f"{name} {topic}") for name in ("sums", "mail")):
                self._tell(teller, log)
            for partition in range(2):
                for offset in chance.sample(range(40), 5):
                    del log.records[partition][offset]
        return books

    def _tell(self, teller: Told, log: Logged) -> None:
        for partition, records in log.records.items():
            for offset, timestamp in records.items():
                if self.chance.random() < 0.7:
                    teller.add(partition, timestamp, offset, topic=log.topic)
        teller.tell(times=self.chance.randrange(1, 3), told_ms=NOW_MS - self.chance.choice((0, 3_000_000)))

    def _grant(self) -> dict[str, object]:
        chance = self.chance
        return {
            "principal": chance.choice(("User:*", *(f"User:{name}" for name in NAMES))),
            "host": chance.choice(("*", "10.0.0.1", "10.0.0.0/8")),
            "operation": chance.choice(("READ", "WRITE", "ALL", "DESCRIBE")),
            "resource_type": chance.choice(("topic", "topic", "group")),
            "pattern_type": chance.choice(("LITERAL", "PREFIXED")),
            "resource": chance.choice(("*", "bills-", *TOPICS)),
            "permission": chance.choice(("ALLOW", "ALLOW", "DENY")),
        }


class KeptSource:
    """A topic in memory as Spark's Kafka source gives one: a task for each part of a range."""

    def __init__(self, kept: Kept) -> None:
        self._kept = kept

    def records(self, spark: Any, ranges: Sequence[Range], task_records_max: int) -> Any:
        kinds = "partition int, offset bigint, headers array<struct<key: string, value: binary>>, value binary"
        parts = []
        for partition, first, until in ranges:
            for begin in range(first, until, task_records_max):
                end = min(until, begin + task_records_max)
                # Of a record without headers the Kafka source gives NULL.
                found = [(one.partition, one.offset, list(one.headers) or None, one.value) for one in
                         self._kept.records[partition][begin:end]]  # fmt: skip
                parts.append(_opaque(spark, spark.createDataFrame(found, kinds).coalesce(1)))
        whole = parts[0]
        for part in parts[1:]:
            whole = whole.union(part)
        return whole


def _opaque(spark: Any, frame: Any) -> Any:
    """The same records, of which Spark knows as little before it reads them as of those of a topic. Rows that it knows
    it puts together while it plans, so that a task would have those of several partitions.
    """
    from pyspark.sql import DataFrame

    java = java_of(frame)
    return DataFrame(spark._jsparkSession.createDataFrame(java.javaRDD(), java.schema()), spark)
