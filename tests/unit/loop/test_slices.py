"""Long work on the loop: in slices, by turns."""

import asyncio
from itertools import count as counting

import pytest

from kavka_broker.core.fair_queueing import QUANTUM_NS
from kavka_broker.loop.slices import (
    COST_PER_SLICE,
    COST_PER_YIELD,
    YIELDS_PER_SLICE_MAX,
    Cost,
    LoopTime,
    Slices,
    Work,
)


def count(name: str, units: int, done: list[str]) -> Work[str]:
    cost = Cost()
    for _ in range(units):
        if cost.add(1):
            done.append(name)
            yield
    return name


def test_what_fits_into_a_slice_is_done_at_once() -> None:
    assert Slices().run(count("a", COST_PER_SLICE - 1, [])) == "a"


def test_long_work_takes_turns() -> None:
    async def scenario() -> None:
        done, slices = list[str](), Slices()
        works = [slices.run(count(name, 3 * COST_PER_SLICE, done)) for name in "abc"]
        slice_each = [name for name in "abc" for _ in range(YIELDS_PER_SLICE_MAX)]
        assert done == slice_each, "a slice each when it was begun"
        turns = 0
        while not all(isinstance(work, asyncio.Task) and work.done() for work in works):
            before = len(done)
            await asyncio.sleep(0)
            turns += 1
            assert len(done) - before <= YIELDS_PER_SLICE_MAX, "two slices in one turn"
        assert done == slice_each * 3
        assert turns >= 6

    asyncio.run(scenario())


@pytest.mark.parametrize("yields", [1, 3])
def test_a_slice_is_as_much_as_fits_into_a_quantum(yields: int) -> None:
    """What a unit takes differs by work and machine; a slice of slow ones was four quanta long."""

    async def scenario() -> None:
        done, slices = list[str](), Slices()
        slices.time = LoopTime(counting(step=-(-QUANTUM_NS // yields)).__next__)
        work = slices.run(count("a", 10 * yields * COST_PER_YIELD, done))
        assert len(done) == yields
        assert isinstance(work, asyncio.Task)
        while not work.done():
            before = len(done)
            await asyncio.sleep(0)
            assert len(done) - before <= yields

    asyncio.run(scenario())


def test_items_of_anything_come_some_a_turn() -> None:
    async def scenario() -> None:
        slices, steps, others = Slices(), list[object](), 0

        async def go_through() -> None:
            async for some in slices.in_turns((number for number in range(7)), 3):
                steps.append((list(some), slices.is_at_work, others > before[-1]))
                before.append(others)

        before = [-1]
        task = asyncio.ensure_future(go_through())
        while not task.done():
            await asyncio.sleep(0)
            others += 1
        await task
        assert steps == [([0, 1, 2], False, True), ([3, 4, 5], False, True), ([6], False, True)]
        nothing: dict[int, int] = {}
        assert [some async for some in slices.in_turns(nothing, 3)] == []

    asyncio.run(scenario())


def test_work_that_fails_tells_whoever_waits() -> None:
    def failing() -> Work[None]:
        for _ in range(YIELDS_PER_SLICE_MAX):
            yield
        raise ValueError("told")

    async def scenario() -> None:
        slices = Slices()
        work = slices.run(failing())
        assert isinstance(work, asyncio.Task)
        with pytest.raises(ValueError, match="told"):
            await work
        assert slices.run(count("next", 1, [])) == "next"

    asyncio.run(scenario())


def test_work_that_nobody_waits_for_any_more_ends() -> None:
    async def scenario() -> None:
        done, slices = list[str](), Slices()
        given_up = slices.run(count("a", 100 * COST_PER_SLICE, done))
        other = slices.run(count("b", 2 * COST_PER_SLICE, done))
        assert isinstance(given_up, asyncio.Task)
        assert isinstance(other, asyncio.Task)
        await asyncio.sleep(0)
        given_up.cancel()
        assert await other == "b"
        assert done.count("a") < 5 * YIELDS_PER_SLICE_MAX

    asyncio.run(scenario())
