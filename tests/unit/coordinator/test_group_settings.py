"""Settings of groups: their own configs, within the bounds of brokers."""

from typing import Any

import pytest

from kavka_broker.coordinator.groups.group_settings import (
    consumer_settings_of,
    share_settings_of,
    streams_settings_of,
)
from kavka_broker.core.config.broker import BrokerConfig
from tests.unit.coordinator.test_group_coordinator import ADDRESSES

SETTINGS_OF: dict[str, Any] = {
    "consumer": consumer_settings_of,
    "share": share_settings_of,
    "streams": streams_settings_of,
}
INTERVALS = {
    "session_timeout_ms": "session.timeout.ms",
    "heartbeat_interval_ms": "heartbeat.interval.ms",
    "assignment_interval_ms": "assignment.interval.ms",
}


def config(**given: str) -> BrokerConfig:
    return BrokerConfig.parse({"process.roles": "broker", "node.id": "1", **ADDRESSES, **given})


@pytest.mark.parametrize("kind", SETTINGS_OF)
@pytest.mark.parametrize("field", INTERVALS)
def test_intervals_are_the_groups_own_within_the_bounds_of_brokers(kind: str, field: str) -> None:
    key, of_group = f"group.{kind}.{INTERVALS[field]}", f"{kind}.{INTERVALS[field]}"
    lowest, highest = f"group.{kind}.min.{INTERVALS[field]}", f"group.{kind}.max.{INTERVALS[field]}"
    served = config(**{lowest: "50000", key: "50100", highest: "50200"} | others(kind, field))

    def value(**own: str) -> int:
        return int(getattr(SETTINGS_OF[kind](served, own), field))

    assert value() == 50_100
    assert value(**{of_group: "50050"}) == 50_050
    assert value(**{of_group: "1"}) == 50_000, "brokers have raised their bound since the group was given it"
    assert value(**{of_group: "99999"}) == 50_200
    other = next(name for name in SETTINGS_OF if name != kind)
    assert value(**{f"{other}.{INTERVALS[field]}": "50050"}) == 50_100, "it is of another kind of group"


def others(kind: str, field: str) -> dict[str, str]:
    """Return a session that is longer than the heartbeats that are asked for."""
    if field != "heartbeat_interval_ms":
        return {}
    return {f"group.{kind}.session.timeout.ms": "59000", f"group.{kind}.max.session.timeout.ms": "60000"}
