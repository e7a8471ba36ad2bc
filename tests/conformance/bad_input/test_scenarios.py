"""Whatever arrives: Kafka's own error or a closed connection with one log line, and everybody else is served on."""

import pytest

from tests.conformance.bad_input.scenarios import SCENARIOS, Scenario, played
from tests.support.servers import Server, is_apache_kafka
from tests.support.topics import create_topic
from tests.support.wire import brokers_registered

SECONDS_MAX = 60.0


def lines_that_close(server: Server) -> int:
    return sum("connection.closed" in line for line in server.log_lines())


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name.replace(" ", "-"))
def test_the_peer_is_answered_or_closed_and_others_are_served(server: Server, name: str, scenario: Scenario) -> None:
    if is_apache_kafka():
        pytest.skip("test_kafka_agrees.py plays them all against Apache Kafka")
    create_topic(server, name)
    closed_before = lines_that_close(server)
    assert played(scenario, server.address, name, SECONDS_MAX) == scenario.expected_of_kavka
    assert brokers_registered(server.address) == 1, "the broker no longer serves others"
    # The line is written before the connection is closed, so it is there by now.
    lines = lines_that_close(server) - closed_before
    assert lines == (1 if scenario.expected_of_kavka == "closed" else 0)


def test_every_difference_from_kafka_has_its_reason() -> None:
    assert all(bool(scenario.kavka) == bool(scenario.why) for scenario in SCENARIOS)
    assert all(scenario.kavka != scenario.expected for scenario in SCENARIOS)
