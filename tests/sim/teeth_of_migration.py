"""Planted defects of groups that change between the classic protocol and KIP-848 (K10)."""

import asyncio
from collections.abc import Callable
from typing import Any

from kavka_broker.coordinator.groups import consumer_groups, group_commands
from kavka_broker.coordinator.groups.consumer_groups import ConsumerCommands
from kavka_broker.coordinator.groups.group_commands import Command, GroupCommands, Heard, Outcome
from kavka_broker.core.consumer_group import classic_members, downgrade, heartbeat, upgrade
from kavka_broker.core.consumer_group.heartbeat import Change
from kavka_broker.core.consumer_group.records import expression_tombstone
from kavka_broker.core.consumer_group.state import ConsumerGroup
from kavka_broker.core.group.records import batch_of
from kavka_broker.core.group.state import ClassicGroup
from tests.sim.teething import Patch, tooth

LATER_SECONDS = 0.3


@tooth("a group that becomes a consumer group forgets what its members have", "pause", 10,
       workloads="migrating", hectic=True)  # fmt: skip
def upgrades_forget_owned_partitions(patch: Patch) -> None:
    owned = upgrade._owned

    def nothing(*details: Any) -> dict[str, Any]:
        return {member_id: {} for member_id in owned(*details)}

    patch.setattr(upgrade, "_owned", nothing)


@tooth("a group that becomes a classic one begins again with its generations", "pause", 10,
       workloads="migrating", hectic=True)  # fmt: skip
def downgrades_begin_again(patch: Patch) -> None:
    downgraded = downgrade.downgraded

    def first(*details: Any, **more: Any) -> ClassicGroup:
        group = downgraded(*details, **more)
        group.generation = 1
        return group

    patch.setattr(heartbeat, "downgraded", first)


@tooth("the end of a classic group is not written with the consumer group that it becomes", "kill isolate", 10,
       workloads="migrating", hectic=True)  # fmt: skip
def upgrades_leave_the_classic_group_in_the_log(patch: Patch) -> None:
    patch.setattr(consumer_groups, "group_tombstone", lambda group_id: expression_tombstone(group_id, "none"))


@tooth("a consumer group that a classic one becomes is written in two batches, one later", "kill isolate", 10,
       workloads="migrating", hectic=True)  # fmt: skip
def upgrades_are_written_in_two_batches(patch: Patch) -> None:
    work_out, carry_out = group_commands.work_out, GroupCommands._carry_out
    rest: list[tuple[bytearray, bytearray]] = []  # of each batch, what comes later

    def work_out_in_two(command: Command[Any, Any], replay: Callable[..., None]) -> Outcome[Any, Any]:
        outcome = work_out(command, replay)
        if getattr(outcome.change, "upgraded", None) is None:
            return outcome
        records = [*command.before, *outcome.change.records]
        first, second = (batch_of(some, command.around.now_ms) for some in (records[:2], records[2:]))
        rest.append((first, second))
        return Outcome(outcome.change, first, outcome.group, outcome.around)

    def carry_out_in_two(self: ConsumerCommands, outcome: Outcome[ConsumerGroup, Change]) -> Heard:
        heard = carry_out(self, outcome)
        for pair in [pair for pair in rest if pair[0] is outcome.batch]:
            rest.remove(pair)
            asyncio.get_running_loop().call_later(LATER_SECONDS, append_later, self, pair[1])
        return heard

    def append_later(commands: ConsumerCommands, batch: bytearray) -> None:
        if not commands._log.is_closed:
            commands._log.append(batch)

    patch.setattr(group_commands, "work_out", work_out_in_two)
    patch.setattr(GroupCommands, "_carry_out", carry_out_in_two)


@tooth("a classic member of a consumer group is never told to join again", "pause", 10,
       workloads="migrating", hectic=True)  # fmt: skip
def classic_members_keep_their_generation(patch: Patch) -> None:
    patch.setattr(classic_members, "has_to_rejoin", lambda *_: False)


@tooth("a join of a classic member waits for nothing that others have yet to give up", "pause", 10,
       workloads="migrating", hectic=True)  # fmt: skip
def owned_partitions_of_joins_are_not_read(patch: Patch) -> None:
    patch.setattr(classic_members, "_owned", lambda places, topics: {})
