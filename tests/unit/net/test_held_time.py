"""Held time: for how long connections are muted, as quotas and shares count it."""

import asyncio

from kavka_broker.runtime.clock import SystemClock
from tests.support.clocks import StoppedClock
from tests.support.waiting import until
from tests.unit.net.test_connection import HOUR_MS, THROTTLE_MS, body, serving


def test_held_time_is_what_goes_by_and_not_the_sum_of_the_delays() -> None:
    async def scenario() -> None:
        async with serving() as (handlers, connect):
            clock = SystemClock()
            client = await connect()
            client.send("h1", "s2")
            await until(lambda: body("h1") in handlers.clients)
            before_ms = clock.monotonic_ms()
            for _ in range(20):
                handlers.clients[body("h1")].throttle(THROTTLE_MS, handlers.holding)
                handlers.clients[body("h1")].let_go()
            await until(lambda: body("s2") in handlers.begun)
            now_ms = int(clock.monotonic_ms())
            assert THROTTLE_MS - 1 <= handlers.held.total_ms(now_ms) <= now_ms - before_ms + 1
            assert handlers.held.total_ms(now_ms + HOUR_MS) == handlers.held.total_ms(now_ms), "nobody is held now"

    asyncio.run(scenario())


class LateClock(StoppedClock):
    """A clock that is a second later each time that it is read, once it is stopped."""

    def monotonic_ms(self) -> float:
        if self._stopped_ms is not None:
            self._stopped_ms += 1000
        return super().monotonic_ms()


def test_a_longer_delay_counts_from_where_the_shorter_one_ends_however_long_the_node_stands_still() -> None:
    async def scenario() -> None:
        clock = LateClock()
        async with serving(clock=clock) as (handlers, connect):
            client = await connect()
            client.send("h1")
            await until(lambda: body("h1") in handlers.clients)
            clock.stop()
            before_ms = clock.monotonic_ms()
            for hours in range(1, 5):
                handlers.clients[body("h1")].throttle(hours * HOUR_MS, handlers.holding)
                handlers.clients[body("h1")].let_go()
            now_ms = clock.monotonic_ms()
            assert 0 < handlers.held.total_ms(int(now_ms)) <= now_ms - before_ms

    asyncio.run(scenario())


def test_two_held_connections_make_one_held_second_of_their_quota_and_two_of_their_share() -> None:
    async def scenario() -> None:
        async with serving() as (handlers, connect):
            clients = [await connect(), await connect()]
            before_ms = SystemClock().monotonic_ms()
            for index, client in enumerate(clients):
                client.send(f"h{index}")
            await until(lambda: len(handlers.clients) == 2)
            for requester in handlers.clients.values():
                requester.throttle(HOUR_MS, handlers.holding)
                requester.let_go()
            assert handlers.of_entity.connections == 2
            now_ms = int(SystemClock().monotonic_ms()) + HOUR_MS
            assert HOUR_MS <= handlers.of_entity.any_ms(now_ms) <= now_ms - before_ms + 1
            assert 2 * HOUR_MS <= handlers.held.total_ms(now_ms) <= 2 * (now_ms - before_ms) + 1
            for connection in list(handlers.connections):
                connection.abort()
            await until(lambda: not handlers.connections)
            ended_ms = int(SystemClock().monotonic_ms())
            assert handlers.of_entity.any_ms(ended_ms) == handlers.of_entity.any_ms(ended_ms + HOUR_MS), (
                "nobody is held"
            )

    asyncio.run(scenario())


def test_a_connection_that_is_gone_is_held_no_longer() -> None:
    async def scenario() -> None:
        async with serving() as (handlers, connect):
            client = await connect()
            client.send("h1")
            await until(lambda: body("h1") in handlers.clients)
            requester = handlers.clients[body("h1")]
            requester.throttle(HOUR_MS, handlers.holding)
            requester.let_go()
            next(iter(handlers.connections)).abort()
            await until(lambda: not handlers.connections)
        now_ms = int(SystemClock().monotonic_ms())
        assert handlers.held.total_ms(now_ms) == handlers.held.total_ms(now_ms + HOUR_MS)

    asyncio.run(scenario())
