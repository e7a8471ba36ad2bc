"""A member of a group that is gone for good is outlived, once everything else has been judged and is well.

Nothing tells the coordinator but that it hears of the member no more. Within the session and a rebalance the group has
to be its living members and nobody else, and each partition has to be one's of them. While a storm goes on groups
rebalance for so many reasons that nobody would notice it if they did not for this one.
"""

import asyncio
from random import Random
from typing import TYPE_CHECKING, Final

from kavka_broker.protocol.messages.describe_groups_request import DescribeGroupsRequest
from kavka_broker.protocol.messages.describe_groups_response import DescribeGroupsResponse
from tests.sim.history import place_text

if TYPE_CHECKING:
    from tests.sim.grouped import Grouped
    from tests.sim.groups import Groups, Member

LOOK_SECONDS: Final = 0.2
COORDINATOR_SHARE: Final = 0.85
#: On top of two sessions and two rebalances: a member that went astray may join late, or its coordinator move.
SPARE_SECONDS: Final = 12.0


async def outlived(groups: "Groups", asking: "Grouped") -> list[str]:
    """Take away one that has something to do, and see the others take over; what is amiss, if anything is."""
    problem = await settled(groups, asking)
    # A static member would be given its place back, if it came: it does not.
    owner = max(living(groups), key=lambda member: (member.instance is not None, len(member.mine)), default=None)
    if problem is None and owner is not None:
        groups.simulation.say(f"{owner.name} is gone, with {len(owner.mine)} partitions")
        owner.process.die()
        groups.reached(members_outlived=1)
        await may_end_coordinator(groups, asking)
        problem = await settled(groups, asking)
    return [] if problem is None else [f"outlived: {problem}"]


async def may_end_coordinator(groups: "Groups", asking: "Grouped") -> None:
    """In many seeds the coordinator dies with the member, and another one, which never heard it, has to miss it."""
    simulation, random = groups.simulation, Random(f"outliving {groups.simulation.seed}")
    host = (await asking.find())[0]
    node = next(node for node in simulation.nodes if node.host == host)
    if random.random() < COORDINATOR_SHARE and node.is_serving and simulation.may_end(node):
        simulation.say(f"and {node.host}, which coordinates the group")
        node.kill()
        await asyncio.sleep(random.uniform(0.0, 1.0))
        node.start()
        groups.reached(coordinators_outlived=1)


def living(groups: "Groups") -> "list[Member]":
    """Those that take part, or try to."""
    return [
        member for member in groups.members if member.process.is_alive and not (member.is_replaced and not member.mine)
    ]


async def settled(groups: "Groups", asking: "Grouped") -> str | None:
    """Wait until the group is as it has to be; if it does not become so, what is amiss."""
    seconds_max = 2 * sum(groups.timeouts_ms) / 1000 + SPARE_SECONDS
    end = groups.loop.time() + seconds_max
    while (problem := await amiss(groups, asking)) is not None:
        if groups.loop.time() > end:
            return f"{problem}, after {seconds_max:.0f} s: {', '.join(map(str, groups.members))}"
        await asyncio.sleep(LOOK_SECONDS)
    return None


async def amiss(groups: "Groups", asking: "Grouped") -> str | None:
    there = living(groups)
    known = await groups.running(asking, members(asking))
    if known is None:
        return "no coordinator describes the group"
    gone = [member_id for member_id in known if member_id not in [member.member_id for member in there]]
    if gone:
        return f"{', '.join(gone)} is a member and gone"
    vacant = [place for place in groups.simulation.places if not any(place in holder.mine for holder in there)]
    return f"{', '.join(map(place_text, vacant))} is nobody's" if vacant and there else None


async def members(asking: "Grouped") -> list[str] | None:
    """The members as the coordinator knows them; None where it cannot be asked."""
    answer = await asking.try_call(DescribeGroupsRequest([asking.group_id]), DescribeGroupsResponse)
    if answer is None or answer.groups[0].error_code:
        asking.coordinator = None
        return None
    return [member.member_id for member in answer.groups[0].members]
