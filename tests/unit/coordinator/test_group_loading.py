"""Reading a partition of `__consumer_offsets` back."""

import asyncio

import pytest

from kavka_broker.coordinator.groups.group_loading import Loaded, load
from kavka_broker.core.group.image import GroupImage
from kavka_broker.core.group.records import KeyedRecord, framed, group_record, group_tombstone, offset_tombstone
from kavka_broker.core.group.state import GroupState
from kavka_broker.protocol.errors import ProtocolViolation
from kavka_broker.protocol.messages.group.consumer_group_metadata_key import ConsumerGroupMetadataKey
from kavka_broker.protocol.messages.group.consumer_group_metadata_value import ConsumerGroupMetadataValue
from kavka_broker.protocol.messages.group.group_metadata_value import GroupMetadataValue, MemberMetadata
from kavka_broker.protocol.messages.group.offset_commit_key import OffsetCommitKey
from kavka_broker.protocol.messages.group.offset_commit_value import OffsetCommitValue
from kavka_broker.protocol.messages.group.streams_group_metadata_key import StreamsGroupMetadataKey
from kavka_broker.protocol.messages.group.streams_group_metadata_value import StreamsGroupMetadataValue
from kavka_broker.protocol.records.control import ControlType, build_marker
from kavka_broker.protocol.records.record import build_batch
from tests.unit.coordinator.fakes import FakePartition

MEMBER = MemberMetadata("m", "i", "client", "/host", 30_000, 10_000, b"subscription", b"assignment")
STABLE = GroupMetadataValue("consumer", 3, "range", "m", 17, [MEMBER])


def committed(group: str, offset: int, partition: int = 0) -> KeyedRecord:
    return KeyedRecord(OffsetCommitKey(group, "t", partition), OffsetCommitValue(offset), 4)


class Log:
    """A log in memory, batch by batch."""

    def __init__(self) -> None:
        self.partition = FakePartition()

    def write(self, *records: KeyedRecord, producer_id: int = -1) -> None:
        self.raw(*map(framed, records), producer_id=producer_id)

    def raw(self, *pairs: tuple[bytes | None, bytes | None], producer_id: int = -1) -> None:
        log = self.partition.log
        self.add(
            build_batch(
                pairs,
                timestamp_ms=1,
                base_offset=log.log_end_offset,
                producer_id=producer_id,
                producer_epoch=0,
                transactional=producer_id >= 0,
            ),
            len(pairs),
        )

    def end(self, producer_id: int, kind: ControlType) -> None:
        self.add(build_marker(kind, producer_id=producer_id, producer_epoch=0, coordinator_epoch=0, timestamp_ms=1), 1)

    def add(self, batch: bytearray, count: int) -> None:
        log = self.partition.log
        batch[:8] = log.log_end_offset.to_bytes(8, "big")
        log.batches.append(bytes(batch))
        log.log_end_offset += count

    def load(self) -> tuple[GroupImage, Loaded]:
        image = GroupImage()
        return image, asyncio.run(load(self.partition, image))


def offsets(image: GroupImage, group: str) -> dict[int, int]:
    return {index: value.offset for index, value in image.offsets(group).get("t", {}).items()}


def test_the_newest_record_of_a_key_counts() -> None:
    log = Log()
    log.write(committed("g", 1), committed("g", 5, partition=1))
    log.write(committed("g", 2))
    log.write(offset_tombstone("g", "t", 1))
    image, loaded = log.load()
    assert offsets(image, "g") == {0: 2}
    assert loaded.records == 4


def test_a_generation_comes_back_with_its_members() -> None:
    log = Log()
    log.write(group_record("g", STABLE))
    image, _ = log.load()
    group = image.groups["g"]
    assert (group.state, group.generation, group.leader_id) == (GroupState.STABLE, 3, "m")
    assert group.instances == {"i": "m"}
    member = group.members["m"]
    assert (member.assignment, member.metadata("range")) == (b"assignment", b"subscription")


def test_a_deleted_group_is_gone_unless_it_has_offsets() -> None:
    log = Log()
    log.write(group_record("g", STABLE), group_record("h", STABLE), committed("h", 1))
    log.write(group_tombstone("g"), group_tombstone("h"))
    image, _ = log.load()
    assert list(image.groups) == ["h"]
    assert image.groups["h"].state is GroupState.EMPTY


def test_a_group_whose_offsets_were_deleted_leaves_no_trace() -> None:
    log = Log()
    log.write(committed("g", 1), offset_tombstone("g", "t", 0))
    image, _ = log.load()
    assert not image.groups


@pytest.mark.parametrize(("kind", "expected"), [(ControlType.COMMIT, {0: 9}), (ControlType.ABORT, {0: 1})])
def test_offsets_of_a_transaction_count_when_it_commits(kind: ControlType, expected: dict[int, int]) -> None:
    log = Log()
    log.write(committed("g", 1))
    log.write(committed("g", 9), producer_id=4)
    log.end(5, ControlType.COMMIT)
    assert offsets(log.load()[0], "g") == {0: 1}, "another producer's marker"
    log.end(4, kind)
    assert offsets(log.load()[0], "g") == expected


def test_a_group_keeps_the_type_that_apache_kafka_gave_it() -> None:
    log = Log()
    for group in ("new", "left"):
        log.write(KeyedRecord(ConsumerGroupMetadataKey(group), ConsumerGroupMetadataValue(3), 0), committed(group, 7))
    log.write(KeyedRecord(ConsumerGroupMetadataKey("left"), None, 0), committed("simple", 1))
    log.write(KeyedRecord(StreamsGroupMetadataKey("app"), StreamsGroupMetadataValue(2), 0), committed("app", 1))
    image, loaded = log.load()
    assert {name: image.type_of(group) for name, group in image.groups.items()} == {
        "left": "classic",
        "simple": "classic",
    }
    assert [(group.group_id, group.epoch) for group in image.streams_groups.values()] == [("app", 2)]
    assert [(group.group_id, group.epoch) for group in image.consumer_groups.values()] == [("new", 3)]
    assert loaded.passed_over == 0
    assert offsets(image, "new") == {0: 7}
    assert offsets(image, "app") == {0: 1}


def test_record_kinds_of_other_features_are_skipped() -> None:
    log = Log()
    log.raw((b"\x00\x63rest", b"x"), (None, b"x"), (b"x", b""))
    log.write(committed("g", 1))
    image, loaded = log.load()
    assert loaded.passed_over == 3
    assert offsets(image, "g") == {0: 1}


def test_a_value_of_an_unknown_version_stops_the_load() -> None:
    log = Log()
    log.write(committed("g", 1))
    key, _ = framed(committed("g", 1))
    log.raw((key, b"\x00\x63rest"))
    with pytest.raises(ProtocolViolation, match="offset 1"):
        log.load()
