"""Whatever arrives: Kafka's own error or a closed connection with one log line, and everybody else is served on."""

from datetime import UTC, datetime

import pytest

from kavka_broker.runtime.logs import LINES_MAX, PERIOD_SECONDS
from tests.conformance.bad_input.scenarios import SCENARIOS, Scenario, played
from tests.support.servers import Server, is_apache_kafka
from tests.support.topics import create_topic
from tests.support.waiting import until_outside
from tests.support.wire import brokers_registered

SECONDS_MAX = 60.0
DAY_SECONDS = 24 * 60 * 60


def lines_that_close(server: Server) -> list[str]:
    return [line for line in server.log_lines() if "connection.closed" in line]


def has_room_for_a_line(server: Server) -> bool:
    """Whether its log withholds no line of this kind, for which there is room in each period."""
    now = second_of_day(datetime.now(UTC).astimezone().time().isoformat())
    ages = ((now - second_of_day(line.split()[0])) % DAY_SECONDS for line in lines_that_close(server))
    return sum(age <= PERIOD_SECONDS for age in ages) < LINES_MAX


def second_of_day(text: str) -> float:
    hour, minute, second = text.split(":")
    return int(hour) * 3600 + int(minute) * 60 + float(second)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name.replace(" ", "-"))
def test_the_peer_is_answered_or_closed_and_others_are_served(server: Server, name: str, scenario: Scenario) -> None:
    if is_apache_kafka():
        pytest.skip("test_kafka_agrees.py plays them all against Apache Kafka")
    create_topic(server, name)
    until_outside(lambda: has_room_for_a_line(server))
    closed_before = len(lines_that_close(server))
    assert played(scenario, server.address, name, SECONDS_MAX) == scenario.expected_of_kavka
    assert brokers_registered(server.address) == 1, "the broker no longer serves others"
    # The line is written before the connection is closed, so it is there by now.
    lines = len(lines_that_close(server)) - closed_before
    assert lines == (1 if scenario.expected_of_kavka == "closed" else 0)


def test_every_difference_from_kafka_has_its_reason() -> None:
    assert all(bool(scenario.kavka) == bool(scenario.why) for scenario in SCENARIOS)
    assert all(scenario.kavka != scenario.expected for scenario in SCENARIOS)
