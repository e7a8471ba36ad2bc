"""Offsets of open transactions: what counts is the commit that stands last in the log."""

from kavka_broker.core.group.deletion import delete_group
from kavka_broker.core.group.image import GroupImage
from kavka_broker.core.group.state import ClassicGroup
from kavka_broker.core.group.transactional_offsets import StagedOffset
from kavka_broker.protocol.messages.group.offset_commit_key import OffsetCommitKey
from kavka_broker.protocol.messages.group.offset_commit_value import OffsetCommitValue

KEY = OffsetCommitKey("g", "t", 0)
ONE, OTHER = 7, 8


def stage(image: GroupImage, producer_id: int, offset: int, log_offset: int) -> None:
    image.stage(producer_id, StagedOffset(KEY, OffsetCommitValue(offset), log_offset, 0))


def commit(image: GroupImage, producer_id: int) -> None:
    for staged in image.staged.end(producer_id):
        image.replay_offset(staged.key, staged.value, staged.log_offset)


def offset(image: GroupImage) -> int | None:
    value = image.offsets("g").get("t", {}).get(0)
    return None if value is None else value.offset


def test_staged_offsets_count_from_the_commit_on() -> None:
    image = GroupImage()
    stage(image, ONE, 5, 0)
    assert (offset(image), image.staged.is_unstable("g", "t", 0)) == (None, True)
    assert not image.staged.is_unstable("g", "t", 1)
    commit(image, ONE)
    assert (offset(image), image.staged.is_unstable("g", "t", 0)) == (5, False)


def test_an_aborted_offset_never_counts() -> None:
    image = GroupImage()
    stage(image, ONE, 5, 0)
    assert [staged.value.offset for staged in image.staged.end(ONE)] == [5]
    assert (offset(image), len(image.staged)) == (None, 0)
    image.forget_trace(image.groups["g"])
    assert not image.groups


def test_a_later_plain_commit_stays() -> None:
    image = GroupImage()
    stage(image, ONE, 5, 0)
    image.replay_offset(KEY, OffsetCommitValue(9), 1)
    commit(image, ONE)
    assert offset(image) == 9


def test_a_later_staged_offset_replaces_an_earlier_commit() -> None:
    image = GroupImage()
    stage(image, ONE, 5, 1)
    image.replay_offset(KEY, OffsetCommitValue(9), 0)
    commit(image, ONE)
    assert offset(image) == 5


def test_of_two_transactions_the_later_record_counts_and_not_the_later_end() -> None:
    image = GroupImage()
    stage(image, ONE, 5, 0)
    stage(image, OTHER, 6, 1)
    commit(image, OTHER)
    commit(image, ONE)
    assert offset(image) == 6


def test_a_deleted_group_does_not_come_back() -> None:
    image = GroupImage()
    stage(image, ONE, 5, 0)
    records = delete_group(ClassicGroup("g"), image.offsets("g"), image.staged.of_group("g"))
    assert [type(record.key).__name__ for record in records] == ["OffsetCommitKey", "GroupMetadataKey"]
    image.replay_offset(records[0].key, records[0].value, 1)
    commit(image, ONE)
    assert (offset(image), len(image.staged)) == (None, 0)


def test_a_group_with_staged_offsets_leaves_a_trace() -> None:
    image = GroupImage()
    stage(image, ONE, 5, 0)
    image.forget_trace(image.groups["g"])
    assert list(image.groups) == ["g"]
