"""The same records, cleaned by Kavka and by Apache Kafka: what stays is the same, batch by batch, record by record.

Apache Kafka writes the directory: idempotent and transactional producers, every codec, tombstones, aborted
transactions. A copy of it is cleaned by either, and both are given the same records after that and clean once more, and
again: by then the horizon of the tombstones and of the markers of what was aborted has passed in one of the topics. So
the sequences by which a producer is known, the markers that stay and those that go are compared too. Then each serves
what the other has cleaned.
"""

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Final

import pytest

from kavka_broker.protocol.records.batch import BatchHeader
from tests.conformance.side_by_side.products import KAFKA, KAVKA, become
from tests.conformance.storage.compacting import (
    SETTINGS,
    Stand,
    Written,
    all_consumed,
    clean,
    copy_of,
    on_disk,
    running,
    wait_until,
)
from tests.conformance.storage.test_dump_log import dump, files
from tests.support.servers import Server, start_apache_kafka
from tests.support.topics import create_topic

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.extended]

#: Tombstones stay, or go with the run after the one that has met them.
KEEPS, DROPS = "keeps", "drops"
TOPICS: Final = {KEEPS: 86_400_000, DROPS: 0}
EVERY_PRODUCER: Final = 2**63 - 1
CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
#: Kavka cleans up to where a log is synced. What a slow disk has not synced yet would be cleaned by a run of its own,
#: and the tombstones of a topic that drops them would be gone a run earlier.
SYNCED: Final = {"log.flush.interval.messages": "1"}
Stands = dict[str, Stand]


def fill(server: Server, topic: str) -> Written:
    written = Written(server, topic)
    for codec in CODECS:
        written.write(codec)
        for end in ("abort", "commit"):
            written.write(codec, end)
    written.write()
    # A commit is answered before its marker is written.
    wait_until(lambda: len(on_disk(server, topic).markers) == 2 * len(CODECS), server)
    return written


def stands(server: Server, producers_known: int) -> Stands:
    return {topic: on_disk(server, topic, producers_known) for topic in TOPICS}


def cleaned_again_and_again(server: Server, before: Stands, numbers: dict[str, int]) -> list[Stands]:
    """What stands in the logs after each of three runs of the cleaner, with more records in between."""
    known = max(batch.producer_id for stand in before.values() for batch in stand.batches)
    later = [Written(server, topic) for topic in TOPICS]
    for one in later:
        one.number = numbers[one.topic]
    found = []
    for turn in range(3):
        for one in later if turn else ():
            one.write(prefix="later")
        clean(server, *TOPICS)
        found.append(stands(server, known))
    return found


def test_kavka_and_kafka_keep_the_same_records(tmp_path: Path) -> None:
    by_kafka = start_apache_kafka(tmp_path / "kafka", SETTINGS | SYNCED)
    try:
        for topic, retention_ms in TOPICS.items():
            create_topic(
                by_kafka,
                topic,
                cleanup_policy="compact",
                internal_segment_bytes="6000",
                delete_retention_ms=str(retention_ms),
            )
        with ThreadPoolExecutor() as pool:
            written = dict(zip(TOPICS, pool.map(partial(fill, by_kafka), TOPICS), strict=True))
        numbers = {topic: one.number for topic, one in written.items()}
        before = stands(by_kafka, EVERY_PRODUCER)
        by_kavka = copy_of(by_kafka, tmp_path / "kavka", KAVKA)
        theirs = cleaned_again_and_again(by_kafka, before, numbers)
    finally:
        by_kafka.stop()
    with running(by_kavka):
        assert stands(by_kavka, EVERY_PRODUCER) == before
        ours = cleaned_again_and_again(by_kavka, before, numbers)
    for topic in TOPICS:
        more: list[list[BatchHeader]] = []
        for turn, (one, other) in enumerate(zip(theirs, ours, strict=True)):
            more.append(expect_same(other[topic], one[topic], more[-2:], f"run {turn} of {topic}"))
    for after in (theirs, ours):
        expect_that_it_was_worth_it(before, after)
    expect_dump_log_reads(by_kavka)
    become(by_kafka, KAVKA)
    become(by_kavka, KAFKA)
    with running(by_kafka):
        by_us = all_consumed(by_kafka, *TOPICS)
    with running(by_kavka):
        assert all_consumed(by_kavka, *TOPICS) == by_us
    assert all(by_us.values())


def expect_same(ours: Stand, theirs: Stand, before: list[list[BatchHeader]], what: str) -> list[BatchHeader]:
    """Where Kavka ends a segment it keeps the last batch, without records if need be; no other batch is one more. While
    such a batch is of a transaction, its marker stays; and for two runs more: one takes the batch away, and the horizon
    of a marker begins with the next one, which finds nothing of its transaction. Given are the batches that were more
    after each of the two runs before; returned are those after this one.
    """
    more = [batch for batch in ours.batches if batch not in theirs.batches]
    assert ours.records == theirs.records, what
    assert [batch for batch in ours.batches if batch.records_count or batch in theirs.batches] == theirs.batches, what
    assert theirs.markers.items() <= ours.markers.items(), what
    for offset in ours.markers.keys() - theirs.markers.keys():
        producer_id, _ = ours.markers[offset]
        left = [
            batch for batch in chain(*before, more) if batch.producer_id == producer_id and batch.last_offset < offset
        ]
        assert left, f"{what}: the marker at {offset}"
    return more


def expect_that_it_was_worth_it(before: Stands, after: list[Stands]) -> None:
    """Much went, tombstones and markers went where their horizon has passed, and a producer's batch is empty."""
    assert len(after[0][KEEPS].records) < len(before[KEEPS].records) / 3
    tombstones = {topic: sum(record.value is None for record in after[-1][topic].records) for topic in TOPICS}
    assert tombstones[KEEPS] > tombstones[DROPS]
    markers = [len(stand[DROPS].markers) for stand in (before, *after)]
    assert markers[0] == markers[1] == 2 * len(CODECS) > markers[-1], markers
    assert any(not batch.records_count and batch.has_producer_id for batch in after[0][KEEPS].batches)


def expect_dump_log_reads(server: Server) -> None:
    parts = [
        files(server.data / f"{topic}-0", suffix) for topic in TOPICS for suffix in (".log", ".index", ".timeindex")
    ]
    text = dump("--deep-iteration", "--files", ",".join(parts))
    for word in ("isvalid: false", "Mismatches", "Non-consecutive"):
        assert word not in text
