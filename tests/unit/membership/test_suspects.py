"""Who asks about leaders waits while a broker is suspected to be dead, and no longer."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from kavka_broker.membership import suspects
from kavka_broker.membership.suspects import Suspects
from kavka_broker.protocol.messages.metadata.fence_broker_record import FenceBrokerRecord
from kavka_broker.protocol.messages.metadata.register_broker_record import BrokerEndpoint, RegisterBrokerRecord
from kavka_broker.protocol.messages.metadata.register_controller_record import (
    ControllerEndpoint,
    RegisterControllerRecord,
)
from kavka_broker.runtime.clock import SystemClock
from kavka_broker.timers import Timers
from tests.unit.membership.fakes import FakeQuorum

WAIT_SECONDS = 20


def play(scenario: Callable[[Suspects, FakeQuorum], Awaitable[None]]) -> None:
    """Broker 1 is we ourselves; 2 listens at b:2, and as a controller at c:2."""

    async def run() -> None:
        quorum = FakeQuorum()
        for broker_id in (1, 2):
            endpoints = [BrokerEndpoint("PLAINTEXT", "b", broker_id)]
            quorum.commit(RegisterBrokerRecord(broker_id, broker_epoch=broker_id, end_points=endpoints, fenced=False))
        quorum.commit(RegisterControllerRecord(2, end_points=[ControllerEndpoint("CONTROLLER", "c", 2)]))
        async with asyncio.timeout(WAIT_SECONDS):
            await scenario(Suspects(1, quorum, Timers(SystemClock(), asyncio.get_running_loop())), quorum)

    asyncio.run(run())


@pytest.fixture
def for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suspects, "DOUBT_MS_MAX", 600_000)


async def waits(suspected: Suspects) -> "asyncio.Task[None]":
    """Somebody who asks, and whom the moment alone does not satisfy."""
    task = asyncio.create_task(suspected.cleared())
    await asyncio.sleep(10 * suspects.MOMENT_MS / 1000)
    assert not task.done()
    return task


@pytest.mark.usefixtures("for_ever")
def test_nobody_is_suspected() -> None:
    async def scenario(suspected: Suspects, quorum: FakeQuorum) -> None:
        await suspected.cleared()
        suspected.lost("elsewhere", 9)
        suspected.lost("b", 1)
        await suspected.cleared()

    play(scenario)


@pytest.mark.parametrize("address", [("b", 2), ("c", 2)])
@pytest.mark.usefixtures("for_ever")
def test_until_the_suspect_is_fenced(address: tuple[str, int]) -> None:
    async def scenario(suspected: Suspects, quorum: FakeQuorum) -> None:
        suspected.lost(*address)
        waiting = await waits(suspected)
        quorum.commit(FenceBrokerRecord(2, 2))
        await waiting
        suspected.lost(*address)
        await suspected.cleared()

    play(scenario)


@pytest.mark.usefixtures("for_ever")
def test_until_a_connection_stands_again() -> None:
    async def scenario(suspected: Suspects, quorum: FakeQuorum) -> None:
        suspected.lost("b", 2)
        waiting = await waits(suspected)
        suspected.alive("b", 2)
        await waiting

    play(scenario)


@pytest.mark.usefixtures("for_ever")
def test_one_that_gives_up_does_not_end_the_doubt() -> None:
    async def scenario(suspected: Suspects, quorum: FakeQuorum) -> None:
        suspected.lost("b", 2)
        impatient, patient = await waits(suspected), await waits(suspected)
        impatient.cancel()
        await asyncio.sleep(0)
        assert not patient.done()
        suspected.alive("b", 2)
        await patient

    play(scenario)


def test_not_for_ever() -> None:
    async def scenario(suspected: Suspects, quorum: FakeQuorum) -> None:
        suspected.lost("b", 2)
        await suspected.cleared()

    play(scenario)
