"""Planted defects of share groups (KIP-932)."""

from typing import Any

from kavka_broker.coordinator.group_commands import Outcome, ShareHeard
from kavka_broker.coordinator.share_groups import ShareGroups
from kavka_broker.coordinator.share_state_client import ReadState, ShareStateClient
from kavka_broker.core.group.image import GroupImage
from kavka_broker.core.share_group import heartbeat
from kavka_broker.core.share_group.heartbeat import ShareChange
from kavka_broker.core.share_group.state import ShareGroup, StatePartitions
from tests.sim.teething import Patch, tooth


@tooth("an answer to a share consumer does not wait for its records", "kill isolate", 10,
       workloads="sharers", hectic=True)  # fmt: skip
def share_consumers_are_answered_before_the_commit(patch: Patch) -> None:
    carry_out = ShareGroups._carry_out

    def carry_out_hastily(self: ShareGroups, outcome: Outcome[ShareGroup, ShareChange]) -> ShareHeard:
        change, _ = carry_out(self, outcome)
        return change, None

    patch.setattr(ShareGroups, "_carry_out", carry_out_hastily)


@tooth("partitions are assigned before the share coordinator has their state", "pause", 5,
       workloads="sharers", hectic=True)  # fmt: skip
def shares_are_assigned_without_a_state(patch: Patch) -> None:
    def all_of(states: StatePartitions | None, names: Any, topics: Any) -> dict[bytes, frozenset[int]]:
        known = [topic for topic in map(topics.get, sorted(names)) if topic is not None]
        return {topic.topic_id: frozenset(topic.partitions) for topic in known}

    patch.setattr(heartbeat, "_assignable", all_of)


@tooth("a new coordinator forgets share groups with members", "kill isolate", 5, workloads="sharers", hectic=True)
def share_groups_with_members_are_not_read(patch: Patch) -> None:
    finish = GroupImage.finish_loading

    def forgetful(self: GroupImage) -> Any:
        yield from finish(self)
        for group_id, group in list(self.share_groups.items()):
            if group.members:
                del self.share_groups[group_id]

    patch.setattr(GroupImage, "finish_loading", forgetful)


@tooth("a new coordinator forgets which states are initialized", "kill isolate", 5, workloads="sharers", hectic=True)
def initialized_states_are_not_read(patch: Patch) -> None:
    finish = GroupImage.finish_loading

    def forgetful(self: GroupImage) -> Any:
        yield from finish(self)
        for group in self.share_groups.values():
            group.put_states(None)

    patch.setattr(GroupImage, "finish_loading", forgetful)


@tooth("an acceptance is acknowledged before the share coordinator has it", "kill isolate", 10,
       workloads="sharers", hectic=True)  # fmt: skip
def acceptances_are_not_written(patch: Patch) -> None:
    async def not_written(self: ShareStateClient, group_id: str, place: Any, state: Any) -> None:
        return None

    patch.setattr(ShareStateClient, "write", not_written)


@tooth("a new leader of a share partition forgets what was accepted", "kill isolate", 10,
       workloads="sharers", hectic=True)  # fmt: skip
def accepted_records_are_not_read(patch: Patch) -> None:
    read = ShareStateClient.read

    async def without_batches(self: ShareStateClient, group_id: str, place: Any, leader_epoch: int) -> ReadState:
        return (await read(self, group_id, place, leader_epoch))._replace(batches=[])

    patch.setattr(ShareStateClient, "read", without_batches)
