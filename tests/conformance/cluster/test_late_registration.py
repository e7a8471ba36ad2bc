"""A broker that serves, and the registration of its own former process, which the network delivers afterwards."""

import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages.describe_cluster_request import DescribeClusterRequest
from kavka_broker.protocol.messages.describe_cluster_response import DescribeClusterResponse
from tests.support.asking import ask
from tests.support.late import LateRelay
from tests.support.nodes import Nodes, Place, prepare
from tests.support.servers import free_port, is_apache_kafka

pytestmark = [pytest.mark.slow, pytest.mark.extended]

SETTINGS = {
    "default.replication.factor": "1",
    "min.insync.replicas": "1",
    "offsets.topic.replication.factor": "1",
    "broker.heartbeat.interval.ms": "300",
}
CONTROLLER, OTHER, BROKER = 100, 1, 2
BROKER_REGISTRATION = 62


@pytest.fixture
def relay() -> Iterator[LateRelay]:
    made = LateRelay(free_port(), free_port())
    yield made
    made.close()


@pytest.fixture
def nodes(tmp_path: Path, relay: LateRelay) -> Iterator[Nodes]:
    """A controller behind the relay, and two brokers."""
    controller = Place(CONTROLLER, "controller", controller_port=relay.port)
    made = prepare(tmp_path, [controller, Place(OTHER, "broker"), Place(BROKER, "broker")], SETTINGS, static=True)
    config = made[CONTROLLER].directory / "server.properties"
    lines = config.read_text().replace(f"listeners=CONTROLLER://127.0.0.1:{relay.port}", "", 1)
    here, there = (f"CONTROLLER://127.0.0.1:{port}" for port in (relay.server_port, relay.port))
    config.write_text(f"{lines}listeners={here}\nadvertised.listeners={there}\n")
    try:
        made.start()
        wait_for_both(made)
        yield made
    finally:
        made.end()


def wait_for_both(nodes: Nodes) -> None:
    nodes.wait("both brokers take part", lambda: all(are_both_there(nodes, asked) for asked in (OTHER, BROKER)))


def are_both_there(nodes: Nodes, asked: int) -> bool:
    """Whether none of them is fenced. Metadata shows a broker for some seconds more."""
    request = DescribeClusterRequest(include_fenced_brokers=True)
    found = ask(nodes[asked].address, request, DescribeClusterResponse).brokers
    return {one.broker_id for one in found if not one.is_fenced} == {OTHER, BROKER}


def error_of(answer: bytes) -> ErrorCode:
    """Behind the correlation id, no tagged fields, and the throttle time."""
    return ErrorCode(struct.unpack_from(">h", answer, 4 + 1 + 4)[0])


def die_while_registering(nodes: Nodes, relay: LateRelay) -> None:
    """The broker's process is killed when it has sent its registration, and another is started."""
    nodes.kill(BROKER)
    relay.hold(BROKER_REGISTRATION)
    nodes[BROKER].launch()
    relay.wait_held()
    nodes.kill(BROKER)
    nodes.start(BROKER)
    wait_for_both(nodes)


def test_a_late_registration_is_refused_while_its_successor_is_connected(nodes: Nodes, relay: LateRelay) -> None:
    die_while_registering(nodes, relay)
    assert error_of(relay.deliver()) is ErrorCode.DUPLICATE_BROKER_REGISTRATION
    assert are_both_there(nodes, OTHER)
    if not is_apache_kafka():
        assert not any("STALE_BROKER_EPOCH" in line for line in nodes[BROKER].log_lines())


@pytest.mark.skipif(is_apache_kafka(), reason="Apache Kafka waits for the end of the session instead")
def test_a_broker_that_was_replaced_while_it_was_cut_off_takes_its_place_back(nodes: Nodes, relay: LateRelay) -> None:
    die_while_registering(nodes, relay)
    relay.shut()
    nodes.wait("its late registration is taken", lambda: error_of(relay.deliver()) is ErrorCode.NONE)
    relay.open()

    def is_back() -> bool:
        return any("registration.replaced" in line for line in nodes[BROKER].log_lines())

    nodes.wait("it has noticed", is_back)
    wait_for_both(nodes)
