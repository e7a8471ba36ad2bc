"""Who asks about leaders waits while a broker is suspected to be dead, and no longer."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from kavka_broker.loop.timers import TICK_MS, Timers
from kavka_broker.membership.unreachable_brokers import DOUBT_MS_MAX, Suspects
from kavka_broker.protocol.messages.metadata.fence_broker_record import FenceBrokerRecord
from kavka_broker.protocol.messages.metadata.register_broker_record import BrokerEndpoint, RegisterBrokerRecord
from kavka_broker.protocol.messages.metadata.register_controller_record import (
    ControllerEndpoint,
    RegisterControllerRecord,
)
from tests.sim.loop import SimLoop
from tests.sim.node import SimClock
from tests.support.waiting import pass_seconds, play_simulated
from tests.unit.membership.fakes import FakeQuorum


def play(scenario: Callable[[Suspects, FakeQuorum], Awaitable[None]]) -> None:
    """Broker 1 is we ourselves; 2 listens at b:2, and as a controller at c:2. Time is simulated."""

    async def run(loop: SimLoop) -> None:
        quorum = FakeQuorum()
        for broker_id in (1, 2):
            endpoints = [BrokerEndpoint("PLAINTEXT", "b", broker_id)]
            quorum.commit(RegisterBrokerRecord(broker_id, broker_epoch=broker_id, end_points=endpoints, fenced=False))
        quorum.commit(RegisterControllerRecord(2, end_points=[ControllerEndpoint("CONTROLLER", "c", 2)]))
        await scenario(Suspects(1, quorum, Timers(SimClock(loop), loop)), quorum)

    play_simulated(run)


async def asks_for_ms(suspected: Suspects) -> float:
    """How long somebody who asks now has to wait."""
    loop = asyncio.get_running_loop()
    begun = loop.time()
    await suspected.cleared()
    return (loop.time() - begun) * 1000


async def waits(suspected: Suspects) -> "asyncio.Task[None]":
    """Somebody who asks, and still waits right before the doubt would end by itself."""
    task = asyncio.create_task(suspected.cleared())
    await pass_seconds((DOUBT_MS_MAX - 1) / 1000)
    assert not task.done()
    return task


def test_no_request_waits_while_no_broker_is_suspected() -> None:
    async def scenario(suspected: Suspects, quorum: FakeQuorum) -> None:
        assert await asks_for_ms(suspected) == 0
        suspected.lost("elsewhere", 9)
        suspected.lost("b", 1)
        assert await asks_for_ms(suspected) == 0
        suspected.lost("b", 2)
        assert await asks_for_ms(suspected) > 0

    play(scenario)


def test_a_loss_that_is_read_behind_the_request_counts() -> None:
    # The loop reads what has arrived in one go, the request first; that a connection is lost it tells a turn later.
    async def scenario(suspected: Suspects, quorum: FakeQuorum) -> None:
        loop = asyncio.get_running_loop()
        asking = asyncio.create_task(asks_for_ms(suspected))
        loop.call_soon(loop.call_soon, suspected.lost, "b", 2)
        assert await asking > 0

    play(scenario)


@pytest.mark.parametrize("address", [("b", 2), ("c", 2)])
def test_an_answer_waits_until_the_suspect_is_fenced(address: tuple[str, int]) -> None:
    async def scenario(suspected: Suspects, quorum: FakeQuorum) -> None:
        suspected.lost(*address)
        waiting = await waits(suspected)
        quorum.commit(FenceBrokerRecord(2, 2))
        await waiting
        suspected.lost(*address)
        assert await asks_for_ms(suspected) == 0

    play(scenario)


def test_an_answer_waits_until_a_connection_stands_again() -> None:
    async def scenario(suspected: Suspects, quorum: FakeQuorum) -> None:
        suspected.lost("b", 2)
        waiting = await waits(suspected)
        suspected.alive("b", 2)
        await waiting
        assert await asks_for_ms(suspected) == 0

    play(scenario)


def test_one_that_gives_up_does_not_end_the_doubt() -> None:
    async def scenario(suspected: Suspects, quorum: FakeQuorum) -> None:
        suspected.lost("b", 2)
        patient = asyncio.create_task(suspected.cleared())
        impatient = await waits(suspected)
        impatient.cancel()
        await asyncio.sleep(0)
        assert not patient.done()
        suspected.alive("b", 2)
        await patient

    play(scenario)


def test_a_doubt_about_a_broker_ends() -> None:
    async def scenario(suspected: Suspects, quorum: FakeQuorum) -> None:
        suspected.lost("b", 2)
        assert DOUBT_MS_MAX <= await asks_for_ms(suspected) <= DOUBT_MS_MAX + 2 * TICK_MS
        assert await asks_for_ms(suspected) == 0

    play(scenario)
