"""A plain cluster of brokers that nobody's operator runs is given TLS while clients write: a second listener, then the
brokers among themselves, then the plain one goes. Three rolls, and nothing that was acknowledged is lost.

`KAVKA_TEST_SERVER=apache-kafka` runs it against the real thing.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, Message, Producer
from confluent_kafka.admin import AdminClient

from tests.conformance.cluster.history import TOPIC, History, create_topic, is_whole, within
from tests.support.nodes import Nodes, Place, cluster, combined
from tests.support.secured import certificates

pytestmark = [pytest.mark.slow, pytest.mark.extended]

ADDRESSES = "DNS:localhost,IP:127.0.0.1"


def rolls(place: Place, keys: Path) -> Iterator[dict[str, str]]:
    """What is written into server.properties before each roll."""
    plain, secured = f"PLAINTEXT://127.0.0.1:{place.port}", f"INSIDE://127.0.0.1:{place.inside_port}"
    controller = f"CONTROLLER://127.0.0.1:{place.controller_port}"
    yield {
        "listeners": f"{plain},{secured},{controller}",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,INSIDE:SSL",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(keys / "broker.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(keys / "ca.crt"),
        "ssl.client.auth": "required",
    }
    yield {"inter.broker.listener.name": "INSIDE"}
    yield {"listeners": f"{secured},{controller}"}


def restart(nodes: Nodes, place: Place, changed: dict[str, str]) -> None:
    server = nodes[place.node_id]
    server.stop()
    with (server.directory / "server.properties").open("a") as file:  # of a key that stands twice the last counts
        file.write("".join(f"{key}={value}\n" for key, value in changed.items()))
    server.launch()


def test_a_plain_cluster_is_given_tls_by_a_second_listener(tmp_path: Path) -> None:
    keys, places = certificates(tmp_path / "keys", ADDRESSES).directory, combined(3)
    shown: dict[str, str | int | float | bool] = {
        "bootstrap.servers": ",".join(f"127.0.0.1:{place.inside_port}" for place in places),
        "security.protocol": "SSL",
        "ssl.ca.location": str(keys / "ca.crt"),
        "ssl.certificate.location": str(keys / "client.crt"),
        "ssl.key.location": str(keys / "client.key"),
        "log_level": 0,
    }
    with cluster(tmp_path, places) as nodes:
        admin, inside = create_topic(nodes), AdminClient(shown)
        history = History(nodes)
        for step in range(3):
            for place in places:
                if step == 2 and place is places[0]:
                    history.finish()
                    history.check()  # clients of the plain listener have gone to the other by now
                restart(nodes, place, list(rolls(place, keys))[step])
                within(f"roll {step}: node {place.node_id} is in sync", partial(is_whole, inside if step else admin))
                if step < 2:
                    history.produce(0.3)
        told: list[KafkaError | None] = []

        def delivered(error: KafkaError | None, _: Message) -> None:
            told.append(error)

        producer = Producer({**shown, "acks": "all"})
        for number in range(30):
            producer.produce(TOPIC, b"later", partition=number % 3, on_delivery=delivered)
        assert producer.flush(60) == 0
        assert told == [None] * 30
        within("all are in sync, the last that was restarted too", partial(is_whole, inside))
