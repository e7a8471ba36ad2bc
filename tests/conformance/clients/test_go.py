"""Clients in Go write transactions and read what is committed: franz-go and sarama."""

import json

import pytest

from tests.support.programs import go_clients, run
from tests.support.servers import Server
from tests.support.topics import create_topic

pytestmark = [pytest.mark.go, pytest.mark.slow]


@pytest.mark.parametrize("client", ["franz", "sarama"])
def test_a_producer_commits_aborts_and_is_fenced(server: Server, name: str, client: str) -> None:
    create_topic(server, name)
    found = json.loads(run([str(go_clients()), client, server.bootstrap, name]))
    assert found["Read"] == ["committed", "committed", "of the next"]
    assert found["Offsets"] == [1, 1, 1, 4]
    assert any(word in found["Fenced"].lower() for word in ("fenced", "invalid_producer_epoch", "old epoch")), found


def test_franz_go_takes_it_for_what_it_takes_apache_kafka_for(server: Server) -> None:
    """Apache Kafka 4.3.1 is taken for the same; kminion has it as its metric `cluster_version`."""
    assert run([str(go_clients()), "version", server.bootstrap]).strip() == "at least v4.1"
