"""Files of two logs that have come into each other's place, though both are sound and of the same layout."""

from struct import pack
from typing import Any

import pytest
from crc32c import crc32c

from kavka_broker.storage.checkpoints import HIGH_WATERMARKS
from kavka_broker.storage.file_names import FOREIGN, LOG, OFFSET_INDEX, SNAPSHOT, TIME_INDEX
from kavka_broker.storage.log import Log
from kavka_broker.storage.producer_snapshot import _MARK
from tests.support.sim_disk import SimDisk
from tests.unit.storage.support import NOW_MS, append, config
from tests.unit.storage.test_log_manager import ID, OTHER_ID, formatted, start

RECORDS = 12


def send(log: Log, value: bytes, sequence: int, producer_id: int) -> bool:
    """Whether it was there already."""
    batch: dict[str, Any] = {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": sequence}
    return append(log, value, timestamp_ms=NOW_MS + sequence, **batch).duplicate


def two_topics(count: int = RECORDS, other_count: int = RECORDS, *, ids: tuple[int, int] = (7, 8)) -> SimDisk:
    """Closed cleanly: the same offsets, sizes and times, of other values."""
    disk = formatted()
    manager = start(disk)
    for topic, topic_id, records, producer_id in (("t", ID, count, ids[0]), ("u", OTHER_ID, other_count, ids[1])):
        log = manager.create(topic, 0, topic_id, config())
        for sequence in range(records):
            send(log, topic.encode() * 100, sequence, producer_id)
    manager.close()
    return disk


def newest(disk: SimDisk, topic: str, suffix: str) -> str:
    return max(f"/data/{topic}-0/{name}" for name in disk.names(f"/data/{topic}-0") if name.endswith(suffix))


def put(disk: SimDisk, source: str, target: str) -> None:
    disk.overwrite(target, disk.read_file(source))


def opened(disk: SimDisk) -> Log:
    log = start(disk).get("t", 0)
    assert log is not None
    return log


def as_kafka_writes_it(disk: SimDisk, path: str) -> None:
    """Kafka's own form ends with the producers."""
    body = disk.read_file(path)[6 : -_MARK.size]
    disk.overwrite(path, pack(">hI", 1, crc32c(body)) + body)


# --- snapshots -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_crash", [True, False])
@pytest.mark.parametrize("by_kafka", [True, False])
def test_the_snapshot_of_another_log_is_not_believed(by_kafka: bool, is_crash: bool) -> None:
    disk = two_topics()
    put(disk, newest(disk, "u", SNAPSHOT), newest(disk, "t", SNAPSHOT))
    if by_kafka:
        as_kafka_writes_it(disk, newest(disk, "t", SNAPSHOT))
    if is_crash:
        disk.overwrite("/data/.kafka_cleanshutdown", None)
    log = opened(disk)
    assert send(log, b"t" * 100, RECORDS - 1, 7)
    assert not send(log, b"next", RECORDS, 7)
    assert log.log_end_offset == RECORDS + 1


def test_of_the_same_log_one_from_another_place_is_not_believed() -> None:
    disk = two_topics()
    oldest = min(name for name in disk.names("/data/t-0") if name.endswith(SNAPSHOT))
    put(disk, f"/data/t-0/{oldest}", newest(disk, "t", SNAPSHOT))
    assert send(opened(disk), b"t" * 100, RECORDS - 1, 7)


def test_what_kafka_has_written_is_believed_where_the_batches_agree() -> None:
    disk = two_topics()
    as_kafka_writes_it(disk, newest(disk, "t", SNAPSHOT))
    before = disk.read_file(newest(disk, "t", SNAPSHOT))
    log = opened(disk)
    assert log.producer_files.snapshots.newest == RECORDS
    assert disk.read_file(newest(disk, "t", SNAPSHOT)) == before


def test_a_snapshot_is_kept_where_it_may_be_the_id_that_is_another_s() -> None:
    disk = two_topics()
    put(disk, "/data/u-0/partition.metadata", "/data/t-0/partition.metadata")
    start(disk)
    assert disk.exists(newest(disk, "t", SNAPSHOT))
    assert int(newest(disk, "t", SNAPSHOT)[-29:-9]) == RECORDS


# --- logs ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("other_count", [RECORDS - 1, RECORDS, RECORDS + 1])
def test_another_log_of_the_same_layout_is_found_by_its_snapshot(other_count: int) -> None:
    """One that is shorter, as long, and longer; no index tells."""
    disk = two_topics(other_count=other_count, ids=(7, 7))
    put(disk, newest(disk, "u", LOG), newest(disk, "t", LOG))
    assert opened(disk).is_foreign


def test_another_log_is_found_again_after_a_crash_and_is_the_partition_s_where_its_witnesses_are_gone() -> None:
    disk = two_topics()
    put(disk, newest(disk, "u", LOG), newest(disk, "t", LOG))
    assert opened(disk).is_foreign
    disk.kill()
    again = opened(disk)
    assert again.is_foreign
    assert again.log_end_offset == RECORDS
    disk.kill()
    for name in disk.names("/data/t-0"):
        if name.endswith((SNAPSHOT, OFFSET_INDEX, TIME_INDEX)):
            disk.remove(f"/data/t-0/{name}")
    assert not opened(disk).is_foreign
    assert not disk.exists(f"/data/t-0/{FOREIGN}")


def test_an_older_segment_of_another_log_is_found() -> None:
    disk = two_topics(ids=(7, 7))
    name = sorted(name for name in disk.names("/data/t-0") if name.endswith(LOG))[1]
    put(disk, f"/data/u-0/{name}", f"/data/t-0/{name}")
    log = opened(disk)
    assert log.is_foreign
    assert "its snapshot" in log.damage


def test_a_log_that_goes_on_behind_where_it_was_closed_is_damaged() -> None:
    """No snapshot of this log bears its end out, and none denies it."""
    disk = two_topics(other_count=RECORDS + 1, ids=(7, 7))
    put(disk, newest(disk, "u", LOG), newest(disk, "t", LOG))
    as_kafka_writes_it(disk, newest(disk, "t", SNAPSHOT))
    log = opened(disk)
    assert "closed at 12" in log.damage


def test_an_older_checkpoint_is_no_damage() -> None:
    disk = two_topics()
    path = "/data/recovery-point-offset-checkpoint"
    disk.overwrite(path, disk.read_file(path).replace(b"t 0 12", b"t 0 11"))
    log = opened(disk)
    assert (log.damage, log.log_end_offset) == ("", RECORDS)


def test_what_compaction_has_rewritten_is_no_other_log() -> None:
    """It keeps a batch's offsets, and takes records out."""
    disk = two_topics()
    path = newest(disk, "t", LOG)
    data = bytearray(disk.read_file(path))
    last = data.rindex(pack(">q", RECORDS - 1) + data[8:12])
    data[last + 57 : last + 61] = pack(">i", 0)
    data[last + 17 : last + 21] = pack(">I", crc32c(bytes(data[last + 21 :])))
    disk.overwrite(path, bytes(data))
    log = opened(disk)
    assert not log.damage


# --- high watermarks -------------------------------------------------------------------------------------------------


def left_at(committed: int) -> SimDisk:
    """Closed cleanly, with a high watermark below the end."""
    disk = formatted()
    manager = start(disk)
    log = manager.create("t", 0, ID, config())
    for sequence in range(RECORDS):
        send(log, b"t", sequence, 7)
    manager.close(broker_epoch=5, high_watermark_of=lambda _: committed)
    return disk


def test_high_watermarks_of_a_clean_stop_are_believed() -> None:
    assert start(left_at(5)).high_watermark("t", 0) == 5


def test_high_watermarks_of_another_directory_are_not_believed() -> None:
    disk = left_at(5)
    disk.overwrite(f"/data/{HIGH_WATERMARKS}", left_at(9).read_file(f"/data/{HIGH_WATERMARKS}"))
    manager = start(disk)
    assert manager.high_watermark("t", 0) == 0
    assert manager.directories[0].is_clean, "nothing has to be recovered"
    manager.close(broker_epoch=6, high_watermark_of=lambda _: 7)
    assert start(disk).high_watermark("t", 0) == 7


def test_high_watermarks_behind_a_mark_of_kafka_are_believed() -> None:
    disk = left_at(5)
    disk.overwrite("/data/.kafka_cleanshutdown", b'{"version":0,"brokerEpoch":5}')
    assert start(disk).high_watermark("t", 0) == 5
