"""Loading a partition of `__consumer_offsets` that the log cleaner has been over."""

import asyncio
from random import Random
from typing import Any

from kavka_broker.coordinator.groups.group_loading import Loaded, load
from kavka_broker.core.group.image import GroupImage
from kavka_broker.core.group.records import KeyedRecord, framed, group_record, group_tombstone, offset_tombstone
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.group.group_metadata_value import GroupMetadataValue, MemberMetadata
from kavka_broker.protocol.messages.group.offset_commit_key import OffsetCommitKey
from kavka_broker.protocol.messages.group.offset_commit_value import OffsetCommitValue
from kavka_broker.protocol.records.control import ControlType
from kavka_broker.protocol.records.record import build_batch
from kavka_broker.storage.log import Log, Origin
from kavka_broker.storage.log_reading import Chunk
from tests.unit.storage.cleaning import COMPACTED, DAY_MS, clean, end, roll
from tests.unit.storage.support import NOW_MS, open_log

COMMITS = 600
GROUPS = 6
TRANSACTION = {"producer_epoch": 0, "transactional": True}


class Readable:
    """A partition as a load reads it."""

    def __init__(self, log: Log) -> None:
        self.log = log

    def read(self, offset: int, bytes_max: int, upper_offset: int, at_least_one: bool) -> Chunk:
        return self.log.read(offset, bytes_max, upper_offset=upper_offset, at_least_one=at_least_one)


def commit(group: str, offset: int, partition: int = 0) -> KeyedRecord:
    return KeyedRecord(OffsetCommitKey(group, "t", partition), OffsetCommitValue(offset), 4)


def write(log: Log, *records: KeyedRecord, **batch: Any) -> None:
    made = build_batch([framed(record) for record in records], timestamp_ms=NOW_MS, **batch)
    log.append_as_leader(memoryview(made), 0, NOW_MS, Origin.COORDINATOR)


def written() -> Log:
    """Commits, generations, groups and offsets that are deleted, transactions that ended well or did not."""
    log, random = open_log(config=COMPACTED), Random(1)
    for number in range(COMMITS):
        group = f"g{random.randrange(GROUPS)}"
        if number % 50 == 0:
            member = MemberMetadata(f"m{number}", "", "client", "/host", 30_000, 10_000, b"s", b"a")
            write(log, group_record(group, GroupMetadataValue("consumer", number, "range", f"m{number}", 17, [member])))
        kind, producer_id = ControlType.COMMIT if number % 2 else ControlType.ABORT, number % 3
        if number % 20 == 7:
            write(log, commit(group, 10_000 + number), producer_id=producer_id, base_sequence=0, **TRANSACTION)
            end(log, producer_id, kind)
        write(log, commit(group, number, random.randrange(3)))
        if number % 40 == 39:
            write(log, offset_tombstone(group, "t", random.randrange(3)))
    write(log, offset_tombstone("g0", "t", 0), offset_tombstone("g0", "t", 1), offset_tombstone("g0", "t", 2))
    write(log, group_tombstone("g0"))
    log.producers.transactions.replicated(log.log_end_offset)
    roll(log)
    write(log, commit("g1", 1))
    return log


def loaded(log: Log) -> tuple[dict[str, dict[int, int]], dict[str, Message | int], Loaded]:
    image = GroupImage()
    outcome = asyncio.run(load(Readable(log), image))
    offsets = {
        name: {index: value.offset for index, value in image.offsets(name).get("t", {}).items()}
        for name in image.groups
    }
    return offsets, {name: group.generation for name, group in image.groups.items()}, outcome


def test_a_cleaned_log_loads_the_same_groups_from_fewer_records() -> None:
    log = written()
    offsets, generations, before = loaded(log)
    assert "g0" not in offsets
    assert len(offsets) == GROUPS - 1
    read = [before.records]
    for now_ms in (NOW_MS, NOW_MS + DAY_MS, NOW_MS + 2 * DAY_MS):
        clean(log, now_ms=now_ms)
        again, generations_again, outcome = loaded(log)
        assert (again, generations_again) == (offsets, generations)
        read.append(outcome.records)
        write(log, commit("g1", 1))
        roll(log)
    assert before.records > COMMITS
    # Three partitions of each group and its generation, and what lies behind the first uncleanable offset.
    assert read[-1] <= GROUPS * 4 + len(read)
    assert read[-1] < read[1], "tombstones are gone, a day later"
