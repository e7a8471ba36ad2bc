"""Any history of a streams group keeps its promises.

- What the log says is the group as it is, replayed whole, and replayed from the last record of each key in any order.
- An active task never runs in two threads that count as alive (T4), and no task twice in one process.
- Left alone with working clients every task runs once, has its standbys, and the group writes nothing any more.
"""

from collections import Counter
from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kavka_broker.core.group.records import KeyedRecord
from kavka_broker.core.streams_group import records
from kavka_broker.core.streams_group.settings import StreamsGroupSettings
from kavka_broker.core.streams_group.state import TASK_BYTES, StreamsGroup, StreamsState, size_of
from kavka_broker.core.streams_group.tasks import TaskTarget
from kavka_broker.protocol.coordinator_records import frame_key, frame_value, unframe
from tests.unit.streams_group.world import World

Step = Callable[[World], object]

NAMES = ["a1", "a1", "a2", "b1", "b2", "c1"]
SETTINGS = [
    StreamsGroupSettings(assignment_interval_ms=0, initial_rebalance_delay_ms=0),
    StreamsGroupSettings(assignment_interval_ms=1_000, initial_rebalance_delay_ms=3_000),
    StreamsGroupSettings(assignment_interval_ms=0, initial_rebalance_delay_ms=0, standby_replicas=1),
    StreamsGroupSettings(assignment_interval_ms=1_000, standby_replicas=2, members_max=4),
]


def join(name: str) -> Step:
    return lambda world: world.join(name)


def beat(name: str, is_lost: bool, follows: bool) -> Step:
    return lambda world: name in world.clients and world.beat(name, is_lost=is_lost, follows=follows)


def leave(name: str) -> Step:
    return lambda world: name in world.clients and world.leave(name)


def advance(ms: int) -> Step:
    return lambda world: world.advance(ms)


def put(name: str, partitions: int) -> Step:
    return lambda world: world.topics.grow(name, partitions)


def delete(name: str) -> Step:
    return lambda world: world.topics.delete(name)


def settings(chosen: StreamsGroupSettings) -> Step:
    def step(world: World) -> None:
        world.settings = chosen

    return step


KINDS: list[Callable[[Random], Step]] = [
    lambda chance: join(chance.choice(NAMES)),
    lambda chance: join(chance.choice(NAMES)),
    *[lambda chance: beat(chance.choice(NAMES), chance.random() < 0.2, chance.random() < 0.8)] * 6,
    lambda chance: leave(chance.choice(NAMES)),
    lambda chance: advance(chance.choice([500, 3_000, 20_000, 46_000])),
    lambda chance: put(chance.choice("trc"), chance.choice([2, 3, 3])),
    lambda chance: delete(chance.choice("trc")),
    lambda chance: settings(chance.choice(SETTINGS)),
    lambda _: World.reload,
]


def replayed(log: list[KeyedRecord]) -> dict[str, StreamsGroup]:
    """The groups of a log, read from its bytes."""
    groups = dict[str, StreamsGroup]()
    for record in log:
        value = None if record.value is None else frame_value(record.value, record.version)
        records.replay(groups, *unframe(frame_key(record.key), value))
    return groups


def check_log(world: World, chance: Random) -> None:
    last = list({frame_key(record.key): record for record in world.log}.values())
    chance.shuffle(last)
    for log in (world.log, last):
        assert replayed(log) == world.groups


def tasks_of(tasks: TaskTarget) -> dict[str, list[tuple[str, int]]]:
    roles = {"active": tasks.active, "standby": tasks.standby, "warmup": tasks.warmup}
    return {role: [(part, index) for part in parts for index in parts[part]] for role, parts in roles.items()}


def check_tasks(world: World) -> None:
    running, in_process = Counter[tuple[str, int]](), Counter[tuple[str, tuple[str, int]]]()
    for client in world.clients.values():
        if client.member_id in world.group.members:
            tasks = tasks_of(client.owned)
            running.update(tasks["active"])
            in_process.update((client.name[0], task) for role in tasks.values() for task in role)
    assert not [task for task, count in running.items() if count > 1], "a task is active twice"
    assert not [task for task, count in in_process.items() if count > 1], "a task is twice in a process"


def check_sizes(world: World) -> None:
    group = world.group
    targets = TASK_BYTES * sum(target.count for target in group.targets.values())
    members = sum(member.size_bytes for member in group.members.values())
    assert group.size_bytes == size_of(group.topology) + targets + members
    assert group.endpoints == sum(member.endpoint is not None for member in group.members.values())


def settle(world: World) -> None:
    for name in "trc":
        world.topics.put(name, 3)
    for wait_ms in [10_000] * 6 + [1_500] * 14:  # the sessions of threads that are gone end first
        world.advance(wait_ms)
        for name in list(world.clients):
            world.beat(name)
            check_tasks(world)


def check_settled(world: World) -> None:
    if not world.group.members:
        return
    assert world.group.state is StreamsState.STABLE
    for client in world.clients.values():
        client.follow()
    alive = [client for client in world.clients.values() if client.member_id in world.group.members]
    running = Counter(task for client in alive for task in tasks_of(client.owned)["active"])
    assert running == Counter({(part, index): 1 for part in "01" for index in range(3)})
    processes = len({client.name[0] for client in alive})
    standbys = Counter(task for client in alive for task in tasks_of(client.owned)["standby"])
    wanted = min(world.settings.standby_replicas, processes - 1)
    assert standbys == Counter({("1", index): wanted for index in range(3) if wanted})
    written = len(world.log)
    for client in alive:
        world.beat(client.name)
    assert len(world.log) == written, "a settled group writes"


@pytest.mark.parametrize("chosen", SETTINGS)
@given(seed=st.integers(0, 2**32))
def test_any_history(chosen: StreamsGroupSettings, seed: int) -> None:
    chance = Random(seed)
    world = World(chosen)
    for _ in range(chance.randrange(5, 60)):
        chance.choice(KINDS)(chance)(world)
        check_tasks(world)
        check_sizes(world)
    check_log(world, chance)
    settle(world)
    check_settled(world)
    check_log(world, chance)
