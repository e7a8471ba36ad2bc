"""Any sequence of joins, syncs, heartbeats, departures, failures and restarts keeps a group's promises.

- Every request is answered once, and in the end each has been answered.
- A generation has one leader and one protocol that all its members support, however often its answer is asked for.
- An assignment that a member gets was made by the leader of the generation that the member is in.
- What the log holds is the group as it is, whenever nothing is on its way.
- Left alone, a group comes to rest: no members, no timers.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from kavka_broker.core.group.persistence import restore
from kavka_broker.core.group.settings import GroupSettings
from kavka_broker.core.group.state import ClassicGroup, GroupState
from kavka_broker.protocol.messages.join_group_response import JoinGroupResponse
from kavka_broker.protocol.messages.sync_group_response import SyncGroupResponse
from tests.unit.group.world import World

Step = Callable[[World], object]

NAMES = st.sampled_from("ABCDE")
PROTOCOLS = st.sampled_from(["range,sticky", "range,sticky", "range,sticky", "sticky,range", "sticky", "range:m"])
SETTINGS = GroupSettings(members_max=3, initial_rebalance_delay_ms=1_000)


def join(name: str, protocols: str, version: str, is_fresh: bool) -> Step:
    options = {"v": version, "protocols": protocols, "rebalance": "20s"}
    if name in "DE":  # static members; E and its restarts share an instance
        options["instance"] = name
    if is_fresh:
        options["fresh"] = ""
    return lambda world: world.join(name, **options)


def sync(name: str) -> Step:
    def step(world: World) -> None:
        client = world.clients.get(name)
        if client is not None:
            made_by = f"{client.generation}/{len(world.answers)}"
            world.sync(name, dict.fromkeys(world.group.members, made_by))

    return step


def heartbeat(name: str) -> Step:
    return lambda world: name in world.clients and world.heartbeat(name)


def leave(name: str) -> Step:
    def step(world: World) -> None:
        client = world.clients.get(name)
        if client is not None and client.member_id:
            world.leave(client.member_id, client.options.get("instance"))

    return step


def all_join(world: World) -> None:
    """What a fleet does by itself."""
    for _ in range(2):  # the second time with the ids that the first gave them
        for name in list(world.clients):
            if not any(request.client == name for request in world.waiting):
                world.join(name)
    world.advance(1_000)


def all_sync(world: World) -> None:
    for name in reversed(world.clients):
        sync(name)(world)


def restart(world: World) -> None:
    world.restart()


JOINS = st.builds(join, NAMES, PROTOCOLS, st.sampled_from("369"), st.booleans())
STEPS = st.one_of(
    JOINS,
    JOINS,
    st.builds(sync, NAMES),
    st.builds(sync, NAMES),
    st.builds(heartbeat, NAMES),
    st.builds(leave, NAMES),
    st.builds(lambda by_ms: lambda world: world.advance(by_ms), st.integers(0, 12_000)),
    st.builds(lambda disk: lambda world: world.set_disk(disk), st.sampled_from(["works", "works", "holds", "fails"])),
    st.just(all_join),
    st.just(all_join),
    st.just(all_sync),
    st.just(restart),
)


@given(st.lists(STEPS, min_size=20, max_size=40))
def test_any_sequence_of_requests_keeps_the_rules_of_groups(steps: list[Step]) -> None:
    world, told = World(SETTINGS), Told()
    for step in steps:
        if step is restart:
            told = Told(len(world.answers))
        step(world)
        check_structure(world.group)
        told.check(world)
        check_log(world)
    world.set_disk("works")
    world.advance(1_000_000)
    assert not world.waiting
    assert world.group.state is GroupState.EMPTY
    assert not world.group.members
    assert not world.group.pending
    assert not world.timers


def check_structure(group: ClassicGroup) -> None:
    members = group.members
    assert all(member_id == member.member_id for member_id, member in members.items())
    assert group.instances == {m.instance_id: m.member_id for m in members.values() if m.instance_id is not None}
    assert (group.leader_id in members) if members else (group.leader_id is None)
    assert group.unsynced.keys() <= members.keys()
    spoken = Counter(name for m in members.values() for name in {name for name, _ in m.protocols})
    assert dict(group.supported) == dict(spoken)
    assert group.pending.keys().isdisjoint(members)
    assert len(members) <= SETTINGS.members_max or group.state is GroupState.PREPARING_REBALANCE
    assert all(m.join is None for m in members.values()) or group.state is GroupState.PREPARING_REBALANCE
    assert all(m.sync is None for m in members.values()) or group.state is GroupState.COMPLETING_REBALANCE
    match group.state:
        case GroupState.EMPTY:
            assert not members
        case GroupState.STABLE | GroupState.COMPLETING_REBALANCE:
            assert members
            assert group.protocol_name in group.candidates()


@dataclass(slots=True)
class Told:
    """What clients have been told of each generation since the broker's last start."""

    seen: int = 0
    protocols: dict[int, str] = field(default_factory=dict)
    leaders: dict[int, str] = field(default_factory=dict)
    assignments: dict[int, bytes] = field(default_factory=dict)

    def check(self, world: World) -> None:
        new = range(self.seen, len(world.answers))
        self.seen = len(world.answers)
        for index in new:
            _, response = world.answers[index]
            if response.error_code:
                continue
            match response:
                case JoinGroupResponse():
                    self._check_join(response)
                case SyncGroupResponse():
                    self._check_sync(response, world.generations_asked[index])
        is_assigning = world.group.state is GroupState.COMPLETING_REBALANCE
        assert not is_assigning or world.group.generation in self.leaders

    def _check_join(self, response: JoinGroupResponse) -> None:
        generation, protocol = response.generation_id, response.protocol_name or ""
        assert self.protocols.setdefault(generation, protocol) == protocol
        if response.leader == response.member_id and not response.skip_assignment:
            assert self.leaders.setdefault(generation, response.leader) == response.leader

    def _check_sync(self, response: SyncGroupResponse, generation: int) -> None:
        assignment = response.assignment
        if assignment:
            assert assignment.startswith(f"{generation}/".encode())
            assert self.assignments.setdefault(generation, assignment) == assignment


def check_log(world: World) -> None:
    group = world.group
    is_settled = group.state in (GroupState.STABLE, GroupState.EMPTY) and not group.writes_pending
    if not is_settled or not world.log or world.has_lost_write:
        return
    replayed = restore("g", world.log[-1])
    assert persistent(replayed) == persistent(group)
    if group.state is GroupState.EMPTY:
        assert replayed.state_since_ms == group.state_since_ms


def persistent(group: ClassicGroup) -> object:
    """The part of a group that its record holds."""
    protocol = group.protocol_name or ""
    members = [
        (
            member.member_id,
            member.instance_id,
            member.client_id,
            member.session_timeout_ms,
            member.rebalance_timeout_ms,
            member.metadata(protocol),
            member.assignment,
        )
        for member in group.members.values()
    ]
    return group.state, group.generation, group.protocol_type, group.protocol_name, group.leader_id, members
