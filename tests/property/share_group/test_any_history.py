"""Any history of a share group keeps its promises.

- What the log says is the group as it is, replayed whole, and replayed from the last record of each key in any order.
- A member only has partitions of which the share coordinator has the state.
- Left alone with working clients, every partition comes to as many members as the others of its topics, and the group
  writes nothing any more.
"""

from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kavka_broker.core.group.records import KeyedRecord
from kavka_broker.core.share_group import administration, records, state_partitions
from kavka_broker.core.share_group import heartbeat as rules
from kavka_broker.core.share_group.settings import ShareGroupSettings
from kavka_broker.core.share_group.state import ShareGroup, StatePartitions
from kavka_broker.protocol.coordinator_records import frame_key, frame_value, unframe
from kavka_broker.protocol.messages.group.share_group_member_metadata_key import ShareGroupMemberMetadataKey
from kavka_broker.protocol.messages.group.share_group_metadata_key import ShareGroupMetadataKey
from tests.unit.share_group.world import World

Step = Callable[[World], object]

NAMES = "AABBCD"
TOPICS = [("t",), ("t",), ("t", "u"), ("u",), ("t", "missing")]
SETTINGS = [
    ShareGroupSettings(assignment_interval_ms=0),
    ShareGroupSettings(assignment_interval_ms=1_000),
    ShareGroupSettings(assignment_interval_ms=0, members_max=2),
]


def join(name: str, topics: tuple[str, ...]) -> Step:
    return lambda world: world.join(name, *topics)


def beat(name: str, is_lost: bool) -> Step:
    return lambda world: name in world.clients and world.beat(name, is_lost=is_lost)


def subscribe(name: str, topics: tuple[str, ...]) -> Step:
    def step(world: World) -> None:
        if (client := world.clients.get(name)) is not None:
            client.topics, client.says_all = topics, True

    return step


def leave(name: str) -> Step:
    return lambda world: name in world.clients and world.leave(name)


def answer(mask: int) -> Step:
    return lambda world: world.answer(fails=lambda index: bool(mask >> index & 1))


def advance(ms: int) -> Step:
    return lambda world: world.advance(ms)


def grow(name: str, partitions: int) -> Step:
    return lambda world: world.topics.grow(name, partitions)


def delete(name: str) -> Step:
    return lambda world: world.topics.delete(name)


def alter(name: str) -> Step:
    return lambda world: world.alter(name, 0, 1)


def forget_offsets(name: str) -> Step:
    return lambda world: world.delete_topic_offsets(name)


def delete_group(is_answered: bool) -> Step:
    return lambda world: world.delete_group(is_answered=is_answered)


def forget_topics(world: World) -> None:
    world.command(lambda group: administration.forget_deleted_topics(group, world.topics))


KINDS: list[Callable[[Random], Step]] = [
    lambda chance: join(chance.choice(NAMES), chance.choice(TOPICS)),
    lambda chance: beat(chance.choice(NAMES), chance.random() < 0.2),
    lambda chance: beat(chance.choice(NAMES), False),
    lambda chance: beat(chance.choice(NAMES), False),
    lambda chance: subscribe(chance.choice(NAMES), chance.choice(TOPICS)),
    lambda chance: leave(chance.choice(NAMES)),
    lambda chance: answer(chance.choice([0, 0, 0, 1, 6])),
    lambda _: answer(0),
    lambda _: World.never_answer,
    lambda chance: advance(chance.choice([500, 5_000, 31_000, 46_000])),
    lambda chance: grow(chance.choice("tu"), chance.choice([5, 7])),
    lambda chance: delete(chance.choice("tu")),
    lambda chance: alter(chance.choice("tu")),
    lambda chance: forget_offsets(chance.choice("tu")),
    lambda chance: delete_group(chance.random() < 0.7),
    lambda _: forget_topics,
]


def replayed(log: list[KeyedRecord]) -> dict[str, ShareGroup]:
    """The groups of a log, read from its bytes."""
    groups = dict[str, ShareGroup]()
    for record in log:
        value = None if record.value is None else frame_value(record.value, record.version)
        records.replay(groups, *unframe(frame_key(record.key), value))
    return groups


def check_log(world: World, chance: Random) -> None:
    last = list({frame_key(record.key): record for record in world.log}.values())
    chance.shuffle(last)
    for log in (world.log, last):
        assert replayed(log) == world.groups


def check_members(world: World) -> None:
    group = world.group
    states = {} if group.states is None else group.states.initialized
    for member in group.members.values():
        for topic_id, indexes in member.assigned.items():
            if world.topics.by_id(topic_id) is not None:
                assert topic_id in states, "a partition is assigned that is not initialized"
                assert indexes <= states[topic_id].partitions, "a partition is assigned that is not initialized"
                assert {(topic_id, index) for index in indexes} <= world.initialized
    sizes = sum(member.size_bytes for member in group.members.values())
    assert group.size_bytes == sizes + (0 if group.states is None else group.states.size_bytes)


def settle(world: World) -> None:
    for _ in range(14):
        world.advance(5_000)
        for name in world.clients:
            world.beat(name)
        while world.asked:
            world.answer()
        check_members(world)


def check_settled(world: World, chance: Random) -> None:
    group = world.group
    written = len(world.log)
    for name, client in world.clients.items():
        if client.member_id in group.members:
            world.beat(name)
    assert len(world.log) == written, "a group that is left alone writes on"
    for topic in world.topics.by_name.values():
        subscribed = [member for member in group.members.values() if topic.name in member.topics]
        holders = [member for member in subscribed for _ in member.assigned.get(topic.topic_id, ())]
        assert len({index for one in subscribed for index in one.assigned.get(topic.topic_id, ())}) == (
            len(topic.partitions) if subscribed else 0
        ), "a partition of a subscribed topic is with nobody"
        assert len(holders) >= len(topic.partitions) or not subscribed
    assert all(member.epoch == group.assignment_epoch == group.epoch for member in group.members.values())
    states = group.states or StatePartitions()
    waiting = {(key, index) for key, topic in states.initializing.items() for index in topic.partitions}
    assert waiting <= world.unanswered, "what was answered is still waited for"
    check_log(world, chance)


def play(chance: Random, length: int) -> None:
    """A history that is drawn, and what becomes of its group when it is left alone."""
    world = World(chance.choice(SETTINGS), t=4, u=3)
    for name in "AB":
        world.join(name, "t", "u")
    if chance.random() < 0.7:
        world.settle(rounds=3)
    for _ in range(length):
        chance.choice(KINDS)(chance)(world)
        check_members(world)
        if chance.random() < 0.3:
            check_log(world, chance)
    check_log(world, chance)
    settle(world)
    check_settled(world, chance)


@given(st.randoms(use_true_random=False), st.integers(0, 40))
def test_any_history_keeps_the_promises_of_a_group(chance: Random, length: int) -> None:
    play(chance, length)


# --- planted defects are found --------------------------------------------------------------------------------------


def forgets_failures(settle: Any) -> Any:
    return lambda states, done, failed: settle(states, {**done, **failed}, {})


def keeps_initializing(settle: Any) -> Any:
    def defect(states: Any, done: Any, failed: Any) -> Any:
        after = settle(states, done, failed)
        return StatePartitions(states.initializing, after.initialized, after.deleting)

    return defect


def loses_deleting(begin: Any) -> Any:
    def defect(states: Any, wanted: Any) -> Any:
        after = begin(states, wanted)
        return StatePartitions(after.initializing, {}, after.deleting)

    return defect


def assigns_all(assignable: Any) -> Any:
    def defect(states: Any, names: Any, topics: Any) -> Any:
        known = [topic for topic in map(topics.get, sorted(names)) if topic is not None]
        return {topic.topic_id: frozenset(topic.partitions) for topic in known}

    return defect


def buries_group_with_its_epoch(bury: Any) -> Any:
    """A tombstone of the epoch takes the rest of the group with it."""

    def defect(group: Any, key: Any) -> None:
        bury(group, key)
        if isinstance(key, ShareGroupMetadataKey):
            group.put_states(None)

    return defect


def forgets_target(take: Any) -> Any:
    def defect(group: Any, key: Any, value: Any) -> None:
        take(group, key, value)
        if isinstance(key, ShareGroupMemberMetadataKey):
            group.targets.setdefault(key.member_id, {})

    return defect


def moves_while_it_waits(has_unassigned: Any) -> Any:
    return lambda group, topics: bool(group.members) and group.states is not None and bool(group.states.initialized)


DEFECTS: list[tuple[object, str, Callable[[Any], Any]]] = [
    (state_partitions, "settle", forgets_failures),
    (state_partitions, "settle", keeps_initializing),
    (state_partitions, "begin", loses_deleting),
    (rules, "_assignable", assigns_all),
    (records.replay, "bury", buries_group_with_its_epoch),
    (records.replay, "put", forgets_target),
    (rules, "_has_unassigned", moves_while_it_waits),
]


@pytest.mark.parametrize(("place", "name", "defect"), DEFECTS, ids=lambda part: getattr(part, "__name__", str(part)))
def test_a_planted_defect_is_found(
    place: object, name: str, defect: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(place, name, defect(getattr(place, name)))
    for seed in range(400):
        try:
            play(Random(seed), 40)
        except (AssertionError, KeyError):
            return
    pytest.fail("no history has shown it")
