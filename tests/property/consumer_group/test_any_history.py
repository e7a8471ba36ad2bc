"""Any history of a consumer group keeps its promises.

- A partition is never with two clients at once, whatever is lost, slow or fenced (K4).
- What the log says is the group as it is, replayed whole, and replayed from the last record of each key in any order.
- Left alone with working clients, every partition comes to somebody who subscribes to it, and the group is Stable.
"""

from collections.abc import Callable
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from kavka_broker.core.consumer_group.records import replay
from kavka_broker.core.consumer_group.settings import ConsumerGroupSettings
from kavka_broker.core.consumer_group.state import ConsumerGroup, GroupState
from kavka_broker.core.group.records import KeyedRecord
from kavka_broker.protocol.coordinator_records import frame_key, frame_value, unframe
from tests.unit.consumer_group.world import GROUP, World

Step = Callable[[World], object]

NAMES = st.sampled_from("AABBCDE")
TOPICS = st.sampled_from([("t",), ("t",), ("t", "u"), ("u",), ()])
INSTANCES = {"D": "d", "E": "d"}  # two clients that share an instance id
SETTINGS = st.builds(
    ConsumerGroupSettings,
    assignment_interval_ms=st.sampled_from([0, 1_000]),
    assignors=st.sampled_from([("uniform", "range"), ("range", "uniform")]),
    members_max=st.sampled_from([3, 100]),
)


def join(name: str, topics: tuple[str, ...]) -> Step:
    def step(world: World) -> None:
        world.join(name, instance_id=INSTANCES.get(name)).topics = topics

    return step


def beat(name: str, is_lost: bool, follows: bool) -> Step:
    return lambda world: name in world.clients and world.beat(name, is_lost=is_lost, follows=follows)


def come(is_joint: bool) -> Step:
    def step(world: World) -> None:
        world.is_joint = is_joint

    return step


def subscribe(name: str, topics: tuple[str, ...], regex: str | None = None) -> Step:
    def step(world: World) -> None:
        if (client := world.clients.get(name)) is not None:
            client.topics, client.regex, client.says_all = topics, regex, True

    return step


def leave(name: str, epoch: int) -> Step:
    def step(world: World) -> None:
        if (client := world.clients.get(name)) is not None:
            world.leave(name, epoch if client.instance_id else -1)

    return step


STEPS = st.one_of(
    st.builds(join, NAMES, TOPICS),
    st.builds(beat, NAMES, st.booleans(), st.booleans()),
    st.builds(beat, NAMES, st.just(False), st.just(False)),
    st.builds(beat, NAMES, st.just(False), st.just(True)),
    st.builds(beat, NAMES, st.just(False), st.just(True)),
    st.builds(subscribe, NAMES, TOPICS),
    st.builds(subscribe, NAMES, TOPICS, st.sampled_from(["", "[tu]", "t.*", "u?"])),
    st.just(World.match),
    st.builds(come, st.booleans()),
    st.builds(leave, NAMES, st.sampled_from([-1, -2])),
    st.builds(lambda ms: lambda world: world.advance(ms), st.sampled_from([500, 5_000, 30_000, 61_000])),
    st.builds(lambda name, n: lambda world: world.topics.grow(name, n), st.sampled_from("tu"), st.sampled_from([5, 7])),
    st.builds(lambda name: lambda world: world.topics.delete(name), st.sampled_from("tu")),
)


def replayed(records: list[KeyedRecord]) -> dict[str, ConsumerGroup]:
    """The groups of a log, read from its bytes."""
    groups = dict[str, ConsumerGroup]()
    for record in records:
        value = None if record.value is None else frame_value(record.value, record.version)
        replay(groups, *unframe(frame_key(record.key), value))
    return groups


def check(world: World, chance: Random) -> None:
    taken = [place for client in world.clients.values() for place in client.places()]
    assert len(taken) == len(set(taken)), f"a partition is with two clients: {world.owned()}"
    group = world.group
    held = [
        (topic_id, index)
        for member in group.members.values()
        for owned in (member.assigned, member.revoking)
        for topic_id, indexes in owned.items()
        for index in indexes
    ]
    assert len(held) == len(set(held)), "a partition is with two members"
    assert group.matched.keys() == group.expressed.keys(), "an expression is matched as long as a member has it"
    if chance.random() < 0.8:  # reading the log takes longer than all that made it
        return
    last = list({frame_key(record.key): record for record in world.log}.values())
    chance.shuffle(last)
    for records in (world.log, last):
        found = replayed(records).get(GROUP)
        assert (found or ConsumerGroup(GROUP)) == group


@given(st.lists(STEPS, max_size=50), SETTINGS, st.integers(0, 2**16))
def test_any_history_keeps_the_promises_of_a_group(
    steps: list[Step], settings: ConsumerGroupSettings, seed: int
) -> None:
    world, chance = World(settings, t=4, u=3), Random(seed)
    for name in "AB":  # a group that is under way: from nothing most histories never come to a revocation
        world.join(name, "t", "u")
    world.settle(rounds=3)
    for step in steps:
        step(world)
        check(world, chance)
    world.match()
    for _ in range(20):
        world.advance(5_000)
        for name in world.clients:
            world.beat(name)
        check(world, chance)
    for client in world.clients.values():
        client.follow()
    check(world, chance)
    members = {world.clients[name].member_id for name in world.clients} & world.group.members.keys()
    assert world.group.state is (GroupState.STABLE if members else GroupState.EMPTY)
    wanted = {
        (topic.topic_id, index)
        for topic in world.topics.by_name.values()
        for index in topic.partitions
        if any(topic.name in world.group.topics_of(member) for member in world.group.members.values())
    }
    assert {place for client in world.clients.values() for place in client.places()} == wanted
