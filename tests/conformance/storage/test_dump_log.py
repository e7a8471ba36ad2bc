"""Kafka's own `kafka-dump-log` reads every file that we write."""

import re
import subprocess
from pathlib import Path

import pytest

from kavka_broker.core.config.topic import LogConfig
from kavka_broker.protocol.records.compression import Compression
from kavka_broker.protocol.records.control import ControlType, build_marker
from kavka_broker.protocol.records.record import Record, build_batch
from kavka_broker.storage.disk import RealDisk
from kavka_broker.storage.log import Log, Origin
from kavka_broker.storage.recovery import open_log
from tools.kafka_jars import class_path
from tools.kafka_jvm import java

pytestmark = pytest.mark.java

NOW_MS = 1_700_000_000_000
RECORDS = 20
ROUNDS = 60
PRODUCER_ID = 4711
ABORTED_ID = 4712
ABORTED_AFTER = 30  # rounds


def dump(*arguments: str) -> str:
    command = [*java("256M"), "-cp", class_path(), "org.apache.kafka.tools.DumpLogSegments", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def files(log_directory: Path, suffix: str) -> str:
    found = sorted(log_directory.glob(f"*{suffix}"))
    assert found, f"no {suffix} in {log_directory}"
    return ",".join(map(str, found))


def records(first: int) -> list[Record]:
    return [
        Record(
            -1,
            NOW_MS + first + index,
            b"key-%d" % index,
            b"value-%d " % (first + index) * 8,
            [("h", None), ("i", b"x")],
        )
        for index in range(RECORDS)
    ]


def write(log: Log) -> int:
    """Batches of every codec, an idempotent producer, two transactions with their ends; returns how many records."""
    sequence = 0
    for turn in range(ROUNDS):
        first = turn * RECORDS
        plain = build_batch(records(first), compression=Compression(turn % 5))
        log.append_as_leader(memoryview(plain), 3 + turn // 40, NOW_MS)
        mine = build_batch(
            records(first), producer_id=PRODUCER_ID, producer_epoch=1, base_sequence=sequence, transactional=True
        )
        log.append_as_leader(memoryview(mine), 3 + turn // 40, NOW_MS)
        sequence += RECORDS
        if turn == ABORTED_AFTER:
            write_aborted(log)
    marker = build_marker(
        ControlType.COMMIT, producer_id=PRODUCER_ID, producer_epoch=1, coordinator_epoch=9, timestamp_ms=NOW_MS
    )
    log.append_as_leader(memoryview(marker), 5, NOW_MS, Origin.COORDINATOR)
    return ROUNDS * RECORDS * 2 + 1 + RECORDS + 1


def write_aborted(log: Log) -> None:
    batch = build_batch(records(0), producer_id=ABORTED_ID, producer_epoch=2, base_sequence=0, transactional=True)
    log.append_as_leader(memoryview(batch), 3, NOW_MS)
    marker = build_marker(
        ControlType.ABORT, producer_id=ABORTED_ID, producer_epoch=2, coordinator_epoch=9, timestamp_ms=NOW_MS
    )
    log.append_as_leader(memoryview(marker), 3, NOW_MS, Origin.COORDINATOR)


@pytest.fixture(scope="module", params=["closed", "recovered"])
def written(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    """A log of several segments: closed in good order, or torn and recovered."""
    directory = tmp_path_factory.mktemp("logs") / "orders.eu-7"
    config = LogConfig(internal_segment_bytes=64 * 1024, index_interval_bytes=4096)
    log = open_log(RealDisk(), str(directory), config, now_ms=NOW_MS)
    count = write(log)
    if request.param == "recovered":
        log.abandon()
        last = max(directory.glob("*.log"))
        last.write_bytes(last.read_bytes() + b"\0" * 100)
        for index in directory.glob("*index"):
            index.write_bytes(b"")
        log = open_log(RealDisk(), str(directory), config, recover=True, now_ms=NOW_MS)
        assert log.log_end_offset == count
    log.close()
    return directory, count


def test_dump_log_reads_all_batches_and_records(written: tuple[Path, int]) -> None:
    directory, count = written
    text = dump("--deep-iteration", "--print-data-log", "--files", files(directory, ".log"))
    assert "isvalid: false" not in text
    batches = re.findall(r"^baseOffset: .* isvalid: true", text, re.MULTILINE)
    assert len(batches) == ROUNDS * 2 + 1 + 2
    offsets = [int(found) for found in re.findall(r"^\|? ?offset: (\d+)", text, re.MULTILINE)]
    assert offsets == list(range(count))
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        assert f"compresscodec: {codec}" in text
    assert "endTxnMarker: COMMIT coordinatorEpoch: 9" in text
    assert "endTxnMarker: ABORT coordinatorEpoch: 9" in text
    assert text.count("payload: value-") == count - 2


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_kafka_finds_no_fault_with_the_indexes(written: tuple[Path, int], suffix: str) -> None:
    text = dump("--files", files(written[0], suffix))
    assert text.count("Dumping") == len(list(written[0].glob("*.log")))
    assert "Mismatches" not in text
    assert "Non-consecutive" not in text
    assert "Found" not in text
    assert re.search(r"offset: \d+", text)


def test_indexes_are_sane(written: tuple[Path, int]) -> None:
    text = dump("--index-sanity-check", "--files", files(written[0], ".index"))
    assert text.count("passed sanity check") == len(list(written[0].glob("*.index")))


def test_kafka_reads_the_transaction_index(written: tuple[Path, int]) -> None:
    text = dump("--files", files(written[0], ".txnindex"))
    first = (ABORTED_AFTER + 1) * RECORDS * 2
    entry = f"producerId: {ABORTED_ID} firstOffset: {first} lastOffset: {first + RECORDS} lastStableOffset: {RECORDS}"
    assert [line for line in text.splitlines() if "producerId" in line] == [f"version: 0 {entry}"]


def test_kafka_reads_the_snapshots_of_producers(written: tuple[Path, int]) -> None:
    newest = max(written[0].glob("*.snapshot"))
    text = dump("--files", str(newest))
    assert f"producerId: {PRODUCER_ID} producerEpoch: 1 coordinatorEpoch: 9" in text
    assert "currentTxnFirstOffset: OptionalLong.empty" in text
    assert f"lastSequence: {ROUNDS * RECORDS - 1}" in text
