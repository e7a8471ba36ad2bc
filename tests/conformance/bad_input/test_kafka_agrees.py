"""The scenarios ask of Kavka what Apache Kafka does: all of them, played against the real broker."""

from pathlib import Path

import pytest

from tests.conformance.bad_input.scenarios import SCENARIOS, Scenario, played
from tests.support.servers import start_apache_kafka
from tests.support.topics import create_topic

pytestmark = pytest.mark.extended

SECONDS_MAX = 60.0
SILENT_SECONDS = 10.0  # Apache Kafka never answers one of them


@pytest.mark.java
@pytest.mark.slow
def test_apache_kafka_does_what_the_scenarios_expect(tmp_path: Path) -> None:
    server = start_apache_kafka(tmp_path / "kafka")
    try:
        create_topic(server, "bad")
        seen = {scenario.name: played(scenario, server.address, "bad", patience(scenario)) for scenario in SCENARIOS}
    finally:
        server.kill()
    assert seen == {scenario.name: scenario.expected for scenario in SCENARIOS}


def patience(scenario: Scenario) -> float:
    """How many seconds an answer may take."""
    return SILENT_SECONDS if scenario.expected == "silent" else SECONDS_MAX
