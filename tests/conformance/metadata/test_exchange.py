"""One directory, two brokers: Apache Kafka's tools read the metadata that Kavka writes, each starts on the other's."""

import re
from pathlib import Path

import pytest

from kavka_broker.controller.metadata_log_opener import open_metadata_log
from kavka_broker.controller.metadata_recovery import recover
from kavka_broker.core.config.broker import BrokerConfig
from kavka_broker.core.config.properties import parse_properties
from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.core.quota.entity import DEFAULT, Entity, IpEntity
from kavka_broker.protocol.messages.describe_quorum_request import DescribeQuorumRequest, PartitionData, TopicData
from kavka_broker.protocol.messages.describe_quorum_response import DescribeQuorumResponse
from kavka_broker.protocol.messages.metadata_request import MetadataRequest
from kavka_broker.protocol.messages.metadata_response import MetadataResponse
from kavka_broker.storage.disk import RealDisk
from tests.conformance.metadata.filling import fill, limit
from tests.support.asking import ask
from tests.support.programs import kafka_tool, metadata_shell
from tests.support.servers import Server, start_apache_kafka, start_kavka
from tests.support.waiting import until_outside

pytestmark = [pytest.mark.java, pytest.mark.slow]

LOG = "__cluster_metadata-0"
NOW_MS = 1_800_000_000_000
EVERY_SNAPSHOT = {"metadata.log.max.record.bytes.between.snapshots": "1000"}


def image(server: Server) -> Metadata:
    """What our code makes of a stopped server's directory."""
    properties = parse_properties((server.directory / "server.properties").read_text())
    config = BrokerConfig.parse(properties)
    return recover(config, open_metadata_log(RealDisk(), config, now_ms=NOW_MS)).committed


def assert_filled(metadata: Metadata) -> None:
    assert list(metadata.topics.names()) == ["flights"]
    flights = metadata.topics.get("flights")
    assert flights is not None
    assert sorted(flights.partitions) == [0, 1, 2, 3, 4]
    assert all(state.replicas == (1,) for state in flights.partitions.values())
    assert metadata.configs.topic("flights") == {"retention.ms": "3600000", "cleanup.policy": "compact"}
    assert metadata.configs.all_brokers() == {"min.insync.replicas": "1", "log.retention.ms": "7200000"}
    assert metadata.configs.broker(1) == {"log.cleaner.threads": "2"}
    assert metadata.quotas.limits == {
        "producer_byte_rate": {Entity("alice", "app"): 1048576.0},
        "consumer_byte_rate": {Entity(DEFAULT): 2097152.0},
        "request_percentage": {Entity("default"): 12.5},
        "connection_creation_rate": {IpEntity("127.0.0.1"): 100.0},
    }
    assert metadata.producer_ids.next_producer_id >= 1000
    assert metadata.features.levels["metadata.version"] == 30
    assert metadata.features.levels["kraft.version"] == 1
    assert not metadata.features.unsupported()


def dumped(path: Path) -> str:
    return kafka_tool("dump-log", "--cluster-metadata-decoder", "--files", str(path))


@pytest.fixture(scope="module")
def kavkas(tmp_path_factory: pytest.TempPathFactory) -> Server:
    """A stopped Kavka with metadata of every kind, and snapshots of it."""
    server = start_kavka(tmp_path_factory.mktemp("kavka"), EVERY_SNAPSHOT)
    until_in_a_snapshot(server)
    fill(server.address)
    until_in_a_snapshot(server)
    assert server.stop() == 0
    return server


def until_in_a_snapshot(server: Server) -> None:
    """Alter a quota to and fro until the newest snapshot has all that is there now: another is begun once the log has
    grown, and none while one is written.
    """
    topics = [TopicData(LOG.rpartition("-")[0], [PartitionData(0)])]
    answer = ask(server.address, DescribeQuorumRequest(topics), DescribeQuorumResponse)
    end_offset = answer.topics[0].partitions[0].high_watermark

    def is_there() -> bool:
        for percentage in (13.5, 12.5):
            limit(server.address, [("user", "default")], "request_percentage", percentage)
        return any(int(path.name.partition("-")[0]) >= end_offset for path in snapshots(server))

    until_outside(is_there, what="a snapshot is written")


def test_our_own_start_finds_everything(kavkas: Server) -> None:
    assert_filled(image(kavkas))


def test_kafkas_dump_reads_every_record_of_the_log(kavkas: Server) -> None:
    output = dumped(kavkas.data / LOG / f"{0:020d}.log")
    assert "isvalid: false" not in output
    assert "could not" not in output.lower()
    kinds = set(re.findall(r'"type":"([A-Z_]+)"', output))
    assert kinds >= {
        "BEGIN_TRANSACTION_RECORD",
        "FEATURE_LEVEL_RECORD",
        "CONFIG_RECORD",
        "END_TRANSACTION_RECORD",
        "REGISTER_CONTROLLER_RECORD",
        "REGISTER_BROKER_RECORD",
        "BROKER_REGISTRATION_CHANGE_RECORD",
        "TOPIC_RECORD",
        "PARTITION_RECORD",
        "REMOVE_TOPIC_RECORD",
        "CLIENT_QUOTA_RECORD",
        "PRODUCER_IDS_RECORD",
    }
    assert "LeaderChange" in output
    assert "KRaftVoters" in output


def snapshots(server: Server) -> list[Path]:
    return sorted((server.data / LOG).glob("*.checkpoint"))


def test_kafkas_dump_reads_every_snapshot(kavkas: Server) -> None:
    assert len(snapshots(kavkas)) > 1
    for path in [*snapshots(kavkas), kavkas.data / "bootstrap.checkpoint"]:
        output = dumped(path)
        assert "isvalid: false" not in output
        assert "SnapshotHeader" in output
        assert "SnapshotFooter" in output


def test_kafkas_metadata_shell_walks_the_newest_snapshot(kavkas: Server) -> None:
    newest = snapshots(kavkas)[-1]
    metadata_shell(newest, "ls", "/image/topics/byName", shows=lambda said: said.split() == ["flights"])
    partitions = ["0", "1", "2", "3", "4", "id", "name"]
    metadata_shell(newest, "ls", "/image/topics/byName/flights", shows=lambda said: said.split() == partitions)
    metadata_shell(newest, "cat", "/image/features/metadataVersion", shows=lambda said: "4.3-IV0" in said)


def properties_of(server: Server) -> Path:
    return server.directory / "server.properties"


def topics_of(server: Server) -> dict[str, int]:
    answer = ask(server.address, MetadataRequest(None), MetadataResponse)
    return {str(topic.name): len(topic.partitions) for topic in answer.topics}


def swapped(server: Server, other: Server) -> Server:
    """The program of one on the directory of the other, which is stopped."""
    command = [*other.command[:-1], str(properties_of(server))]
    return Server(command, server.address, server.directory)


def test_each_starts_where_the_other_stopped(tmp_path: Path) -> None:
    kafka = start_apache_kafka(tmp_path / "kafka", EVERY_SNAPSHOT)
    fill(kafka.address)
    kafka.stop()
    assert_filled(image(kafka))
    program = start_kavka(tmp_path / "kavka")
    program.stop()

    kavka = swapped(kafka, program)
    kavka.start()
    try:
        assert topics_of(kavka) == {"flights": 5}
    finally:
        assert kavka.stop() == 0
    assert_filled(image(kavka))

    kafka.start()
    try:
        assert topics_of(kafka) == {"flights": 5}
        described = kafka_tool(
            "configs", "--bootstrap-server", kafka.bootstrap, "--describe", "--entity-type", "users", "--entity-default"
        )
        assert "consumer_byte_rate=2097152.0" in described
    finally:
        kafka.stop()


def test_kavka_starts_on_what_a_killed_kafka_left(tmp_path: Path) -> None:
    kafka = start_apache_kafka(tmp_path / "kafka")
    fill(kafka.address)
    kafka.kill()
    metadata = image(kafka)
    assert_filled(metadata)
    assert [broker.broker_id for broker in metadata.brokers] == [1]


def test_a_tool_of_kafka_can_tell_that_a_directory_is_formatted(kavkas: Server) -> None:
    output = kafka_tool("storage", "info", "-c", str(properties_of(kavkas)))
    assert "Found metadata" in output
