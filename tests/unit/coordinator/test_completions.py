"""Requests that wait for the end of a decided transaction."""

import asyncio
from typing import Any, cast

from kavka_broker.coordinator.transactions.transaction_shard import COMPLETION_WAIT_MS, TransactionShard
from kavka_broker.core.transaction.settings import TransactionSettings
from kavka_broker.core.transaction.state import Place, Standing, Transaction, TransactionState
from kavka_broker.loop.timers import Timers
from tests.unit.coordinator.fakes import Clock, FakePartition, play

PLACE: Place = ("t", 0)


class LoopClock:
    def monotonic_ms(self) -> float:
        return asyncio.get_running_loop().time() * 1000


def decided() -> tuple[TransactionShard, Transaction]:
    """A shard with one transaction that is decided, and lacks its marker."""
    timers = Timers(cast(Any, LoopClock()), asyncio.get_running_loop())
    shard = TransactionShard(
        cast(Any, FakePartition()), TransactionSettings(), Clock(), timers,
        version=lambda: 2, prepared=lambda shard, transaction: None,
    )  # fmt: skip
    shard.is_loading = False
    standing = Standing(7, 1, 60_000, TransactionState.PREPARE_COMMIT, frozenset({PLACE}), 1, 1)
    return shard, shard.admit("x", standing)


def test_they_share_a_future_that_the_end_resolves() -> None:
    async def scenario() -> None:
        shard, transaction = decided()
        waiting = shard.when_completed("x")
        assert waiting is not None
        assert shard.when_completed("x") is waiting
        assert not waiting.done()
        transaction.unmarked.discard(PLACE)
        shard.complete_if_marked(transaction)
        assert waiting.done()
        assert not shard.completions
        assert shard.when_completed("x") is None, "it is complete"
        assert shard.when_completed("unknown") is None

    play(scenario)


def test_an_end_that_does_not_come_is_waited_for_no_longer_than_a_moment() -> None:
    async def scenario() -> None:
        shard, _ = decided()
        began_ms = LoopClock().monotonic_ms()
        waiting = shard.when_completed("x")
        assert waiting is not None
        await waiting
        assert LoopClock().monotonic_ms() - began_ms >= COMPLETION_WAIT_MS - 1
        assert not shard.completions
        again = shard.when_completed("x")
        assert again is not None
        assert not again.done(), "the next request waits anew"
        shard.close()

    play(scenario)


def test_who_waits_goes_on_when_another_broker_takes_over() -> None:
    async def scenario() -> None:
        shard, _ = decided()
        waiting = shard.when_completed("x")
        assert waiting is not None
        shard.close()
        assert waiting.done()
        assert shard.when_completed("x") is None

    play(scenario)


def test_a_request_that_goes_away_takes_nothing_from_the_others() -> None:
    async def scenario() -> None:
        shard, transaction = decided()
        waiting = shard.when_completed("x")
        assert waiting is not None

        async def wait() -> None:
            await asyncio.shield(waiting)

        gone, stays = asyncio.create_task(wait()), asyncio.create_task(wait())
        await asyncio.sleep(0)
        gone.cancel()
        await asyncio.sleep(0)
        transaction.unmarked.discard(PLACE)
        shard.complete_if_marked(transaction)
        await stays
        assert gone.cancelled()

    play(scenario)
