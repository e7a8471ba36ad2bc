"""Kafka's small files: names, checkpoints, partition.metadata, meta.properties, the clean-stop marker."""

import json
from random import Random

import pytest

from kavka_broker.protocol.errors import BrokerError
from kavka_broker.protocol.uuids import ZERO, from_text
from kavka_broker.storage import checkpoints, partition_metadata
from kavka_broker.storage.file_names import (
    NAME_BYTES_MAX,
    PartitionName,
    aside_directory,
    offset_file,
    parse_offset_file,
    parse_partition,
)
from kavka_broker.storage.log_directory import (
    LogDirectory,
    MetaProperties,
    UnusableDirectory,
    open_directories,
    read_meta_properties,
    write_meta_properties,
)
from tests.support.sim_disk import SimDisk
from tests.unit.storage.support import new_disk

CLUSTER = "MkU3OEVBNTcwNTJENDM2Qg"
META = MetaProperties(CLUSTER, 1, from_text("8pQhXzKfQ0mZJ6m3oY3c1A"))
FILE = "/data/file"


@pytest.mark.parametrize(
    ("directory", "name"),
    [
        ("orders-3", ("orders", 3)),
        ("a-b.c_d-12-0", ("a-b.c_d-12", 0)),
        ("__consumer_offsets-49", ("__consumer_offsets", 49)),
        ("orders", None),
        ("orders-", None),
        ("-3", None),
        ("orders-3.0123456789abcdef0123456789abcdef-delete", None),
        ("orders-3.0123456789abcdef0123456789abcdef-stray", None),
        ("orders-3.0123456789abcdef0123456789abcdef-future", None),
        ("lost+found", None),
    ],
)
def test_directories_of_partitions_are_told_from_others(directory: str, name: tuple[str, int] | None) -> None:
    assert parse_partition(directory) == name


def test_files_are_named_by_their_base_offset() -> None:
    assert offset_file(368769, ".log") == "00000000000000368769.log"
    assert parse_offset_file("00000000000000368769.timeindex") == (368769, ".timeindex")
    for other in (
        "leader-epoch-checkpoint",
        "0.log",
        "00000000000000368769.log.deleted",
        "00000000000000000000-0000000000.checkpoint",
    ):
        assert parse_offset_file(other) is None


def test_a_name_aside_fits_a_directory_entry() -> None:
    name = PartitionName("t" * 249, 1234)
    assert len(aside_directory(name, "f" * 32, "-delete")) == NAME_BYTES_MAX
    assert aside_directory(PartitionName("t", 0), "ab", "-delete") == "t-0.ab-delete"


def test_offset_checkpoints_are_kafkas_text() -> None:
    disk = new_disk()
    offsets = {PartitionName("orders", 1): 4712, PartitionName("orders", 0): 4711, PartitionName("a b", 0): 1}
    del offsets[PartitionName("a b", 0)]
    checkpoints.write_offsets(disk, FILE, offsets)
    assert disk.read_file(FILE) == b"0\n2\norders 0 4711\norders 1 4712\n"
    assert checkpoints.read_offsets(disk, FILE) == offsets
    assert checkpoints.read_offsets(disk, "/data/none") == {}


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"1\n0\n",
        b"0\n2\nt 0 1\n",
        b"0\n1\nt 0\n",
        b"0\n1\nt 0 x\n",
        b"0\nmany\n",
        b"\xff\xfe",
        bytes(9),
        b"0\n1\nt 0 12",
        b"0\n1\nt 0 -1\n",
    ],
)
def test_a_malformed_checkpoint_is_refused_by_name(text: bytes) -> None:
    disk = new_disk()
    disk.write_file(FILE, text)
    with pytest.raises(checkpoints.MalformedCheckpoint, match=FILE):
        checkpoints.read_offsets(disk, FILE)


def test_epoch_checkpoints_are_kafkas_text() -> None:
    disk = new_disk()
    checkpoints.write_epochs(disk, FILE, [(0, 0), (2, 3300)], durable=True)
    assert disk.read_file(FILE) == b"0\n2\n0 0\n2 3300\n"
    assert checkpoints.read_epochs(disk, FILE) == [(0, 0), (2, 3300)]
    assert checkpoints.read_epochs(disk, "/data/none") is None
    disk.write_file(FILE, b"0\n2\n2 0\n1 5\n")
    with pytest.raises(checkpoints.MalformedCheckpoint, match="ascend"):
        checkpoints.read_epochs(disk, FILE)


@pytest.mark.parametrize("start_offset", [3, 5])
def test_a_file_whose_epochs_begin_in_another_order_is_not_believed(start_offset: int) -> None:
    disk = new_disk()
    disk.write_file(FILE, b"0\n2\n0 5\n1 %d\n" % start_offset)
    with pytest.raises(checkpoints.MalformedCheckpoint, match="former"):
        checkpoints.read_epochs(disk, FILE)


def test_partition_metadata_is_written_as_kafka_writes_it() -> None:
    disk = new_disk()
    partition_metadata.write(disk, "/data", META.directory_id)
    assert disk.read_file("/data/partition.metadata") == b"version: 0\ntopic_id: 8pQhXzKfQ0mZJ6m3oY3c1A\n"
    assert partition_metadata.read(disk, "/data") == META.directory_id


@pytest.mark.parametrize(
    "text", [b"", bytes(30), b"vers", b"version: 0\n", b"version: 0\ntopic_id: 8pQhXzKfQ0mZJ6m3oY3c1"]
)
def test_a_topic_id_lost_with_power_is_not_known(text: bytes) -> None:
    disk = new_disk()
    assert partition_metadata.read(disk, "/data") == ZERO
    disk.write_file("/data/partition.metadata", text)
    assert partition_metadata.read(disk, "/data") == ZERO


def test_partition_metadata_of_a_newer_format_is_refused() -> None:
    disk = new_disk()
    disk.write_file("/data/partition.metadata", b"version: 7\n")
    with pytest.raises(BrokerError, match="version 7"):
        partition_metadata.read(disk, "/data")


@pytest.mark.parametrize(
    "text", [b"version: 0\nanything: else\n", b"version: 0\ntopic_id: x\n", b"version 0*topic_id", b"\xff"]
)
def test_partition_metadata_that_is_no_such_file_names_nobody(text: bytes) -> None:
    disk = new_disk()
    disk.write_file("/data/partition.metadata", text)
    assert partition_metadata.read(disk, "/data") == ZERO


def test_meta_properties_are_written_as_kafka_writes_them() -> None:
    disk = new_disk()
    write_meta_properties(disk, "/data", META)
    assert disk.read_file("/data/meta.properties").decode().splitlines() == [
        "version=1",
        f"cluster.id={CLUSTER}",
        "node.id=1",
        "directory.id=8pQhXzKfQ0mZJ6m3oY3c1A",
    ]
    assert read_meta_properties(disk, "/data") == META


def snapshot(disk: SimDisk) -> dict[str, bytes]:
    return {name: disk.read_file(f"/data/{name}") for name in disk.names("/data")}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (f"version=1\ncluster.id=another\nnode.id=1\ndirectory.id={'A' * 22}\n", "cluster another"),
        (f"version=1\ncluster.id={CLUSTER}\nnode.id=2\ndirectory.id={'A' * 22}\n", "node 2.*node.id=2"),
        (f"version=2\ncluster.id={CLUSTER}\nnode.id=1\n", "version 2.*newer"),
        (f"version=0\nbroker.id=1\ncluster.id={CLUSTER}\n", "version 0.*older"),
        (f"version=1\ncluster.id={CLUSTER}\nnode.id=one\n", "node.id"),
        (f"version=1\ncluster.id={CLUSTER}\nnode.id=1\n", "directory.id"),
    ],
)
def test_a_directory_that_is_not_ours_is_refused_and_left_alone(text: str, says: str) -> None:
    disk = new_disk()
    disk.write_file("/data/meta.properties", text.encode())
    disk.write_file("/data/.kafka_cleanshutdown", b"")
    before = snapshot(disk)
    with pytest.raises(UnusableDirectory, match=says):
        open_directories(disk, ["/data"], cluster_id=CLUSTER, node_id=1, new_id=lambda: bytes(16))
    assert snapshot(disk) == before


def test_none_is_touched_where_one_is_not_ours() -> None:
    disk = new_disk()
    disk.make_directory("/other")
    write_meta_properties(disk, "/data", META)
    write_meta_properties(disk, "/other", MetaProperties("another", 1, META.directory_id))
    with pytest.raises(UnusableDirectory, match="/other"):
        open_directories(disk, ["/data", "/other"], cluster_id=None, node_id=1, new_id=lambda: META.directory_id)
    assert disk.names("/data") == ["meta.properties"]


def test_an_unformatted_directory_says_what_to_do() -> None:
    with pytest.raises(UnusableDirectory, match="kavka-broker format"):
        open_directories(new_disk(), ["/data"], cluster_id=None, node_id=1, new_id=lambda: META.directory_id)


def test_a_directory_that_was_added_becomes_ours() -> None:
    disk = new_disk()
    write_meta_properties(disk, "/data", META)
    found, directories = open_directories(
        disk, ["/data", "/added"], cluster_id=None, node_id=1, new_id=lambda: b"\7" * 16
    )
    assert found == CLUSTER
    assert [one.directory_id for one in directories] == [META.directory_id, b"\7" * 16]
    assert read_meta_properties(disk, "/added") == MetaProperties(CLUSTER, 1, b"\7" * 16)


def test_two_brokers_keep_each_other_out() -> None:
    disk = new_disk()
    write_meta_properties(disk, "/data", META)
    first = LogDirectory(disk, "/data", META)
    with pytest.raises(UnusableDirectory, match="is locked"):
        LogDirectory(disk, "/data", META)
    first.release()
    LogDirectory(disk, "/data", META)


@pytest.mark.parametrize(("text", "epoch"), [(b'{"version": 0, "brokerEpoch": 42}', 42), (b"", -1)])
def test_a_clean_stop_is_believed_until_logs_may_change(text: bytes, epoch: int) -> None:
    disk = new_disk()
    disk.write_file("/data/.kafka_cleanshutdown", text)
    for _ in range(2):  # a start that dies before it opens a log leaves them as they were
        directory = LogDirectory(disk, "/data", META)
        assert (directory.is_clean, directory.broker_epoch) == (True, epoch)
        disk.kill()
    LogDirectory(disk, "/data", META).unmark_clean()
    disk.crash(Random(1))
    directory = LogDirectory(disk, "/data", META)
    assert (directory.is_clean, directory.broker_epoch) == (False, None)
    directory.mark_clean(43)
    mark = json.loads(disk.read_file("/data/.kafka_cleanshutdown"))
    assert (mark["version"], mark["brokerEpoch"]) == (0, 43)


def test_an_empty_checkpoint_of_the_cleaner_is_how_kafka_begins_one() -> None:
    disk = new_disk()
    for name in (checkpoints.CLEANED_OFFSETS, checkpoints.RECOVERY_POINTS):
        disk.write_file(f"/data/{name}", b"")
    assert checkpoints.read_offsets(disk, f"/data/{checkpoints.CLEANED_OFFSETS}") == {}
    with pytest.raises(checkpoints.MalformedCheckpoint):
        checkpoints.read_offsets(disk, f"/data/{checkpoints.RECOVERY_POINTS}")


def test_a_malformed_checkpoint_makes_the_start_unclean() -> None:
    disk = new_disk()
    disk.write_file("/data/.kafka_cleanshutdown", b"")
    disk.write_file(f"/data/{checkpoints.RECOVERY_POINTS}", b"nonsense")
    assert not LogDirectory(disk, "/data", META).is_clean
