"""A group's offsets are decided alike by the coordinator that serves them and by one that reads the log."""

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

from kavka_broker.coordinator.groups.group_loading import load
from kavka_broker.core.group.image import GroupImage
from kavka_broker.core.group.offsets import Commit
from kavka_broker.protocol.errors import BrokerError
from kavka_broker.protocol.records.control import ControlType, build_marker
from tests.unit.coordinator.fakes import World

Seen = tuple[dict[int, int], set[tuple[int, int, int]]]

STEPS = st.one_of(
    st.tuples(st.just("commit"), st.integers(0, 2), st.just(0)),
    st.tuples(st.just("stage"), st.integers(0, 2), st.integers(7, 9)),
    st.tuples(st.sampled_from(("end", "abort")), st.just(0), st.integers(7, 9)),
    st.tuples(st.sampled_from(("delete group", "delete offset")), st.integers(0, 2), st.just(0)),
)


def seen(image: GroupImage) -> Seen:
    staged = {(producer_id, offset.key.partition, offset.value.offset) for producer_id, offset in image.staged}
    return {index: value.offset for index, value in image.offsets("g").get("t", {}).items()}, staged


def mark(world: World, producer_id: int, *, commits: bool) -> None:
    kind = ControlType.COMMIT if commits else ControlType.ABORT
    log = world.partition.log
    batch = build_marker(kind, producer_id=producer_id, producer_epoch=0, coordinator_epoch=0, timestamp_ms=1)
    batch[:8] = log.log_end_offset.to_bytes(8, "big")
    log.batches.append(bytes(batch))
    log.log_end_offset += 1
    world.shard.staging.end_transaction(producer_id, None, commits=commits)


def play(world: World, number: int, what: str, index: int, producer_id: int) -> None:
    try:
        match what:
            case "commit":
                world.shard.commit("g", -1, "", None, [Commit("t", index, number)], -1, 9)
            case "stage":
                world.shard.staging.check("g", -1, "", None, [])
                world.shard.staging.stage("g", (producer_id, 0), [Commit("t", index, number)])
            case "end" | "abort":
                mark(world, producer_id, commits=what == "end")
            case "delete group":
                world.shard.delete_group("g")
            case _:
                world.shard.delete_offsets("g", [("t", index)])
    except BrokerError:
        return


@settings(max_examples=150, deadline=None)
@given(steps=st.lists(STEPS, max_size=25))
def test_a_replay_decides_as_the_live_state(steps: list[tuple[str, int, int]]) -> None:
    async def scenario() -> None:
        world = World()
        for number, step in enumerate(steps, 1):
            play(world, number, *step)
            replayed = GroupImage()
            await load(world.partition, replayed)
            assert seen(replayed) == seen(world.shard.image), step

    asyncio.run(scenario())
