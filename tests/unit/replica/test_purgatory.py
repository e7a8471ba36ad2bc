"""Who waits for an offset."""

import asyncio

from kavka_broker.replica.leading.purgatory import PURGE_MIN, OffsetWaiters


def test_waiters_end_up_to_the_offset_that_is_reached() -> None:
    async def scenario() -> None:
        waiters = OffsetWaiters()
        futures = [waiters.add(offset) for offset in (5, 3, 5, 9)]
        waiters.reached(5)
        assert [future.done() for future in futures] == [True, True, True, False]

    asyncio.run(scenario())


def test_who_has_given_up_is_forgotten_though_nothing_is_reached() -> None:
    async def scenario() -> None:
        waiters = OffsetWaiters()
        patient = [waiters.add(offset) for offset in range(10)]
        for _ in range(5 * PURGE_MIN):
            waiters.add(1).cancel()
        assert len(waiters) <= PURGE_MIN
        waiters.reached(4)
        assert [future.done() for future in patient] == [True] * 5 + [False] * 5

    asyncio.run(scenario())
