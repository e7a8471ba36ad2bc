"""Planted defects of members that come together: whose first heartbeats are held, and whose first target waits."""

import asyncio
from typing import Any

from kavka_broker.coordinator.groups import arrivals
from kavka_broker.coordinator.groups.arrivals import Arrival, Arrivals
from kavka_broker.core.consumer_group import heartbeat, records
from kavka_broker.core.consumer_group.gathering import ARRIVAL_MS, Gathering
from kavka_broker.core.consumer_group.heartbeat import is_due
from kavka_broker.core.consumer_group.records import expression_tombstone
from kavka_broker.core.consumer_group.settings import ConsumerGroupSettings
from kavka_broker.core.consumer_group.state import ConsumerGroup
from kavka_broker.core.group import image
from kavka_broker.core.group.records import KeyedRecord
from kavka_broker.protocol.message import Message
from tests.sim.teething import Patch, tooth


@tooth("a first heartbeat that is held is never let go", "pause", 5, workloads="gatherers", hectic=True)
def held_heartbeats_stay_held(patch: Patch) -> None:
    patch.setattr(arrivals, "_let_go", lambda held: None)


@tooth("a member that hangs up while it is held is counted as one that comes", "pause", 10,
       workloads="gatherers", hectic=True)  # fmt: skip
def arrivals_outlive_their_connection(patch: Patch) -> None:
    async def arrive(self: Arrivals, group_id: str, member_id: str) -> bool:
        arrival = self._arrivals.setdefault(group_id, Arrival(member_id))
        arrival.is_joint = arrival.is_joint or arrival.member_id != member_id
        arrival.held += 1
        held = asyncio.get_running_loop().create_future()
        self._held[held] = None
        timer = self._timers.after(ARRIVAL_MS, arrivals._let_go, held)
        try:
            await held
        finally:
            timer.cancel()
            del self._held[held]
        arrival.held -= 1
        if not arrival.held:
            del self._arrivals[group_id]
        return arrival.is_joint

    patch.setattr(Arrivals, "arrive", arrive)


@tooth("members that come together wait for others for good", "pause", 5, workloads="gatherers", hectic=True)
def gatherings_never_end(patch: Patch) -> None:
    patch.setattr(Gathering, "is_over", lambda *_: False)


@tooth("each heartbeat of those that wait for others prolongs it", "pause", 10, workloads="gatherers", hectic=True)
def heartbeats_prolong_a_gathering(patch: Patch) -> None:
    gathering = heartbeat._gathering

    def prolonged(*details: Any, is_new: bool) -> Gathering | None:
        return gathering(*details, is_new=True)

    patch.setattr(heartbeat, "_gathering", prolonged)


@tooth("the first of members that come together is assigned everything", "pause", 5,
       workloads="gatherers", hectic=True)  # fmt: skip
def the_first_is_assigned_everything(patch: Patch) -> None:
    def may_assign(group: ConsumerGroup, _: Any, settings: ConsumerGroupSettings, now_ms: int) -> bool:
        return is_due(group.assigned_at_ms, settings.assignment_interval_ms, now_ms)

    patch.setattr(heartbeat, "may_assign", may_assign)


@tooth("members that wait for others are in epoch 0", "pause", 5, workloads="gatherers", hectic=True)
def those_that_wait_are_in_epoch_0(patch: Patch) -> None:
    patch.setattr(heartbeat, "FIRST_EPOCH", 0)


@tooth("no record says in which epoch members wait for others", "pause", 5, workloads="gatherers", hectic=True)
def the_epoch_of_those_that_wait_is_not_written(patch: Patch) -> None:
    record_of = records.target_epoch_record

    def written(group_id: str, epoch: int, assigned_at_ms: int) -> KeyedRecord:
        return record_of(group_id, epoch, assigned_at_ms) if assigned_at_ms else expression_tombstone(group_id, "none")

    patch.setattr(heartbeat, "target_epoch_record", written)


class Endless(Gathering):
    def is_over(self, *_: Any) -> bool:
        return False


@tooth("a new coordinator waits for others, for good, in a group that its predecessor had yet to assign",
       "kill isolate", 10, workloads="gatherers", hectic=True)  # fmt: skip
def successors_wait_for_good(patch: Patch) -> None:
    replay = records.replay

    def replay_waiting(groups: dict[str, ConsumerGroup], key: Message, value: Message | None) -> None:
        replay(groups, key, value)
        group = groups.get(getattr(key, "group_id", ""))
        if group is not None:
            group.gathering = Endless(0, 0) if group.epoch > group.assignment_epoch else None

    patch.setattr(image, "replay_consumer_group", replay_waiting)
