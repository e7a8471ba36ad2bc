"""What is to be done about very many partitions is done a slice a turn of the loop, each once."""

import asyncio
from pathlib import Path

import pytest

from kavka_broker.loop.backlog import SLICE_MAX, Backlog
from kavka_broker.replica.hosting.replica_manager import ReplicaManager
from tests.support.in_process import InProcess, running
from tests.support.waiting import until


def never(error: BaseException) -> None:
    raise error


def test_a_slice_is_done_at_once_and_a_slice_a_turn() -> None:
    async def scenario() -> None:
        done = list[list[int]]()
        turns = Backlog[int]("test", done.append, never)
        turns.add(range(2 * SLICE_MAX + 1))
        assert done == [list(range(SLICE_MAX))]
        turns.add([2 * SLICE_MAX, 2 * SLICE_MAX + 1])  # one waits already
        assert len(done) == 1
        await turns.stop()
        assert list(map(len, done)) == [SLICE_MAX, SLICE_MAX, 2]
        assert [item for items in done for item in items] == list(range(2 * SLICE_MAX + 2))

    asyncio.run(scenario())


def test_what_is_added_while_the_last_slice_is_done_is_not_forgotten() -> None:
    async def scenario() -> None:
        done = list[int]()

        def act(items: list[int]) -> None:
            done.extend(items)
            if done == list(range(SLICE_MAX + 1)):
                turns.add([-1])

        turns = Backlog[int]("test", act, never)
        turns.add(range(SLICE_MAX + 1))
        await turns.stop()
        assert (done[-1], len(turns)) == (-1, 0)

    asyncio.run(scenario())


def test_an_error_ends_the_process() -> None:
    async def scenario() -> None:
        errors = list[BaseException]()

        def act(items: list[int]) -> None:
            if SLICE_MAX in items:
                raise ZeroDivisionError

        turns = Backlog[int]("test", act, errors.append)
        turns.add(range(SLICE_MAX + 1))
        await turns.stop()
        assert [type(error) for error in errors] == [ZeroDivisionError]

    asyncio.run(scenario())


def test_a_broker_takes_partitions_over_in_slices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    handed_over = list[int]()
    hand_over = ReplicaManager._hand_over_all

    def counting(self: ReplicaManager, places: list[tuple[bytes, int]]) -> None:
        handed_over.append(len(places))
        hand_over(self, places)

    monkeypatch.setattr(ReplicaManager, "_hand_over_all", counting)

    async def scenario(inside: InProcess) -> None:
        await inside.create("t", SLICE_MAX + 50)
        await until(lambda: len(list(inside.broker.partitions)) == SLICE_MAX + 50)
        assert max(handed_over) == SLICE_MAX
        assert all(partition.is_leader for partition in inside.broker.partitions)

    async def play() -> None:
        async with running(tmp_path) as inside:
            await scenario(inside)

    asyncio.run(play())
