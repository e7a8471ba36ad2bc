"""The lag of groups whose partitions other brokers lead: asked for, not known where they do not tell, in slices."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from kavka_broker.coordinator.groups import group_lag
from kavka_broker.coordinator.groups.group_lag import AGES_MS, GroupLag
from kavka_broker.coordinator.groups.leader_offsets import LeaderOffsets
from kavka_broker.core.client_names import LABEL_BYTES_MAX
from kavka_broker.core.group.lag import EndSamples
from kavka_broker.core.group.state import ClassicGroup
from kavka_broker.loop.slices import Slices
from kavka_broker.peers import Unreachable
from kavka_broker.protocol.messages.group.offset_commit_value import OffsetCommitValue
from kavka_broker.protocol.messages.list_offsets_request import ListOffsetsRequest
from kavka_broker.protocol.messages.list_offsets_response import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kavka_broker.runtime.lag_figures import lag_samples
from tests.support.in_process import running

HERE, OTHER = 1, 2
HOUR_MS = 3_600_000


class FakeClock:
    """Both clocks go together."""

    def __init__(self) -> None:
        self.ms = 100 * HOUR_MS

    def now_ms(self) -> int:
        return self.ms

    def monotonic_ms(self) -> float:
        return float(self.ms)


class Leader:
    """Another broker: `ends` by isolation level, and an offset for each time that is asked for."""

    def __init__(self) -> None:
        self.ends = {0: 1_000, 1: 900}
        self.by_age_ms: dict[int, int] = {}
        self.is_away = False
        self.asked: list[tuple[int, int]] = []
        self.clock = FakeClock()

    async def ask(self, request: ListOffsetsRequest, _: object, *, timeout_ms: float) -> ListOffsetsResponse:
        assert timeout_ms > 0
        if self.is_away:
            raise Unreachable("no answer")
        topics = []
        for topic in request.topics:
            told = []
            for partition in topic.partitions:
                offset = self.ends[request.isolation_level]
                if partition.timestamp >= 0:
                    offset = self.by_age_ms.get(self.clock.ms - partition.timestamp, -1)
                told.append(ListOffsetsPartitionResponse(partition.partition_index, 0, -1, offset, 0))
            topics.append(ListOffsetsTopicResponse(topic.name, told))
            self.asked.append((request.isolation_level, len(told)))
        return ListOffsetsResponse(topics=topics)


class Image:
    """Committed offsets of groups."""

    def __init__(self, offsets: dict[str, dict[str, dict[int, int]]]) -> None:
        self.groups = {name: ClassicGroup(name) for name in offsets}
        self._offsets = {
            group: {
                topic: {index: OffsetCommitValue(offset=offset) for index, offset in partitions.items()}
                for topic, partitions in topics.items()
            }
            for group, topics in offsets.items()
        }

    def find(self, group_id: str) -> ClassicGroup | None:
        return self.groups.get(group_id)

    def groups_with_offsets(self) -> list[str]:
        return list(self._offsets)

    def offsets(self, group: str) -> Any:
        return self._offsets[group]


class Scene:
    def __init__(
        self, offsets: dict[str, dict[str, dict[int, int]]], leader: int = OTHER, per_request: int = 500
    ) -> None:
        self.peer = Leader()
        self.shards = [SimpleNamespace(image=Image(offsets), partition=SimpleNamespace(index=7))]
        topics = {topic for group in offsets.values() for topic in group}
        states = {index: SimpleNamespace(leader=leader) for index in range(2000)}
        metadata: Any = SimpleNamespace(topics={name: SimpleNamespace(partitions=states) for name in topics})
        groups: Any = SimpleNamespace(shards=lambda: iter(self.shards))
        connections: Any = SimpleNamespace(to=lambda _: self.peer, close=lambda: None)
        leadership = SimpleNamespace(start_offset=0)
        self.own: Any = SimpleNamespace(leadership=leadership, high_watermark=40, last_stable_offset=30, log=None)
        replicas: Any = SimpleNamespace(get=lambda *_: self.own)
        clock: Any = self.peer.clock
        slices = Slices()
        leaders = LeaderOffsets(HERE, replicas, metadata, connections, slices, per_request)
        self.lag = GroupLag(groups, leaders, clock, slices, 15_000)

    def found(self) -> dict[tuple[str, ...], float]:
        """The samples after a round, by name, topic and isolation level."""
        self.peer.clock.ms += 15_000
        asyncio.run(self.lag.measure())
        return {(name, *labels[1:]): value for name, labels, value in lag_samples(self.lag)}


def test_a_leader_elsewhere_tells_the_ends_at_both_isolation_levels() -> None:
    scene = Scene({"etl": {"orders": {0: 950}}})
    found = scene.found()
    assert found["kavka_group_lag_records", "orders", "read_uncommitted"] == 50
    assert found["kavka_group_lag_records", "orders", "read_committed"] == 0
    assert found["kavka_group_lag_seconds", "orders", "read_committed"] == 0
    assert found["kavka_group_lag_age_seconds",] == 0


def test_what_was_unread_before_the_first_round_has_the_age_that_timestamps_tell() -> None:
    scene = Scene({"etl": {"orders": {0: 499}}})
    scene.peer.by_age_ms = {HOUR_MS: 500, 6 * HOUR_MS: 100, 24 * HOUR_MS: 0}
    found = scene.found()
    assert found["kavka_group_lag_seconds", "orders", "read_uncommitted"] == 3600
    asked = len(scene.peer.asked)
    assert asked == 2 + len(AGES_MS)
    found = scene.found()
    assert len(scene.peer.asked) == asked + 2, "it is asked once"
    assert found["kavka_group_lag_seconds", "orders", "read_uncommitted"] == 3615


def test_an_end_that_nobody_tells_is_no_series_and_old_figures_go() -> None:
    scene = Scene({"etl": {"orders": {0: 950}}})
    assert len(scene.found()) == 6
    scene.peer.is_away = True
    found = scene.found()
    assert not any(name[0] in {"kavka_group_lag_records", "kavka_group_lag_seconds"} for name in found)
    scene.peer.clock.ms += group_lag.ROUNDS_SHOWN * 15_000 + 1
    assert list(lag_samples(scene.lag)) == []


def test_a_partition_led_here_is_not_asked_for() -> None:
    scene = Scene({"etl": {"orders": {0: 35}}}, leader=HERE)
    scene.lag.samples["orders", 0] = samples = EndSamples()
    samples.add(scene.peer.clock.ms, 0)
    found = scene.found()
    assert found["kavka_group_lag_records", "orders", "read_uncommitted"] == 5
    assert found["kavka_group_lag_records", "orders", "read_committed"] == 0
    assert scene.peer.asked == []
    scene.own.leadership.start_offset = 41  # a new leader does not know yet what is committed
    assert ("kavka_group_lag_records", "orders", "read_uncommitted") not in scene.found()


def test_a_group_that_moved_away_is_shown_no_longer() -> None:
    scene = Scene({"etl": {"orders": {0: 950}}})
    scene.found()
    scene.shards.clear()
    assert {name for name, _, _ in lag_samples(scene.lag)} == {"kavka_group_lag_age_seconds", "kavka_series_omitted"}


def test_ten_thousand_groups_are_bounded_in_series_and_bytes() -> None:
    names = [f"{'g' * 1000}-{number}" for number in range(10_000)]
    scene = Scene({name: {"orders": {0: 10, 1: 20}} for name in names})
    scene.found()
    found = list(lag_samples(scene.lag))
    assert len(found) == 2 + 4 * group_lag.SERIES_MAX
    assert max(len(labels[0]) for _, labels, _ in found if labels) <= LABEL_BYTES_MAX
    assert ("kavka_series_omitted", ("group",), 10_000 - group_lag.SERIES_MAX) in found


def test_many_partitions_are_asked_for_some_at_a_time() -> None:
    scene = Scene({"etl": {"orders": dict.fromkeys(range(250), 1_000)}}, per_request=100)
    scene.found()
    assert sorted(scene.peer.asked) == [(0, 50), (0, 100), (0, 100), (1, 50), (1, 100), (1, 100)]


def test_slices_of_coordinators_are_cut_by_the_clock_of_the_broker(tmp_path: Path) -> None:
    """Slices of their own would have a clock that stands still, and no turns among those of clients."""

    async def scenario() -> None:
        async with running(tmp_path, {"kavka.admin.listener": "127.0.0.1:0"}) as node:
            lag = node.server.lag
            assert lag is not None
            for slices in (lag.slices, lag.leaders.slices, node.broker.groups.pacing.slices):
                assert slices is node.broker.slices

    asyncio.run(scenario())
