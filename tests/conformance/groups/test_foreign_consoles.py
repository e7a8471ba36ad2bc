"""Consoles and exporters show groups of every kind as Apache Kafka's: by the requests of kminion (franz-go), and by
those of kafka_exporter and Burrow (sarama), which know neither KIP-848 nor share and streams groups.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import confluent_kafka
import pytest
from confluent_kafka import TopicPartition

from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from kavka_broker.protocol.messages.share_group_heartbeat_response import ShareGroupHeartbeatResponse
from kavka_broker.protocol.messages.streams_group_heartbeat_request import StreamsGroupHeartbeatRequest
from kavka_broker.protocol.messages.streams_group_heartbeat_response import StreamsGroupHeartbeatResponse
from tests.conformance.groups.members import eventually
from tests.conformance.groups.test_streams_groups import SOON, switch_on
from tests.conformance.groups.test_streams_groups_agree import plain
from tests.support.asking import ask
from tests.support.both import running_both
from tests.support.programs import go_clients, run
from tests.support.servers import Server
from tests.support.topics import create_topic

pytestmark = [pytest.mark.java, pytest.mark.go, pytest.mark.slow]

TOPIC: Final = "orders"
PROTOCOLS: Final = ("classic", "consumer")
SETTINGS: Final = {
    **SOON,
    "group.initial.rebalance.delay.ms": "0",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}
POLL_SECONDS: Final = 0.2


def test_consoles_see_groups_of_each_kind_as_of_apache_kafka(tmp_path: Path) -> None:
    with running_both(tmp_path, SETTINGS) as both:
        ours, theirs = map(seen_at, both)
    assert ours == theirs
    for client, groups in ours.items():
        assert {name: group["Type"] for name, group in groups.items()} == {
            "of-classic": "consumer",
            "of-consumer": "consumer",
            "of-share": "share",
            "of-streams": "streams",
            "left-classic": "consumer",
            "left-consumer": "consumer",
        }, client
        assert groups["of-classic"]["Clients"] == ["of-classic"], client
        assert groups["of-consumer"]["Offsets"] == {f"{TOPIC}-0": 3}, client


def seen_at(server: Server) -> dict[str, dict[str, Any]]:
    """What each console sees of the groups by their names."""
    switch_on(server.bootstrap)
    create_topic(server, TOPIC, partitions=2)
    for protocol in PROTOCOLS:
        with member(server, f"left-{protocol}", protocol):
            pass
    with member(server, "of-classic", "classic"), member(server, "of-consumer", "consumer"):
        joined_others(server)
        seen: dict[str, dict[str, Any]] = json.loads(run([str(go_clients()), "groups", server.bootstrap]))
    return seen


@contextmanager
def member(server: Server, group: str, protocol: str) -> Iterator[None]:
    """A consumer that has its partitions and has committed an offset; it leaves at the end."""
    settings = {
        "bootstrap.servers": server.bootstrap,
        "group.id": group,
        "client.id": group,
        "group.protocol": protocol,
    }
    consumer = confluent_kafka.Consumer({**settings, "enable.auto.commit": False, "log_level": 0})

    def is_assigned() -> bool:
        consumer.poll(POLL_SECONDS)
        return len(consumer.assignment()) == 2

    try:
        consumer.subscribe([TOPIC])
        eventually("the member has its partitions", is_assigned)
        consumer.commit(offsets=[TopicPartition(TOPIC, 0, 3)], asynchronous=False)
        yield
    finally:
        consumer.close()


def joined_others(server: Server) -> None:
    """Join a share group and a streams group."""
    share = ShareGroupHeartbeatRequest("of-share", "s" * 22, 0, None, [TOPIC])
    streams = StreamsGroupHeartbeatRequest(
        "of-streams",
        "t" * 22,
        0,
        rebalance_timeout_ms=60_000,
        topology=plain(TOPIC),
        active_tasks=[],
        standby_tasks=[],
        warmup_tasks=[],
        process_id="p",
        client_tags=[],
    )
    eventually(
        "the share group has its member",
        lambda: ask(server.address, share, ShareGroupHeartbeatResponse).error_code == ErrorCode.NONE,
    )
    eventually(
        "the streams group has its member",
        lambda: ask(server.address, streams, StreamsGroupHeartbeatResponse).error_code == ErrorCode.NONE,
    )
