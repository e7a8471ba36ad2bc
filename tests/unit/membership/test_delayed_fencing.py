"""A broker that was fenced is shown for a moment longer."""

import asyncio

from kavka_broker.loop.timers import TICK_MS, Timers
from kavka_broker.membership.delayed_fencing import LINGER_MS, Lingering
from kavka_broker.protocol.messages.metadata.fence_broker_record import FenceBrokerRecord
from kavka_broker.protocol.messages.metadata.register_broker_record import RegisterBrokerRecord
from kavka_broker.protocol.messages.metadata.unfence_broker_record import UnfenceBrokerRecord
from kavka_broker.protocol.messages.metadata.unregister_broker_record import UnregisterBrokerRecord
from kavka_broker.runtime.clock import SystemClock
from tests.sim.loop import SimLoop
from tests.sim.node import SimClock
from tests.support.waiting import pass_seconds, play_simulated
from tests.unit.membership.fakes import FakeQuorum


async def made() -> tuple[Lingering, FakeQuorum]:
    quorum = FakeQuorum()
    found = Lingering(quorum, Timers(SystemClock(), asyncio.get_running_loop()))
    for broker_id in (1, 2):
        quorum.commit(RegisterBrokerRecord(broker_id, broker_epoch=broker_id, fenced=False))
    return found, quorum


def test_one_that_was_fenced_lingers_until_it_is_back() -> None:
    async def scenario() -> None:
        found, quorum = await made()
        assert not found.ids
        quorum.commit(FenceBrokerRecord(2, 2))
        assert list(found.ids) == [2]
        quorum.commit(UnfenceBrokerRecord(2, 2))
        assert not found.ids

    asyncio.run(scenario())


def test_one_that_is_unregistered_is_gone() -> None:
    async def scenario() -> None:
        found, quorum = await made()
        quorum.commit(FenceBrokerRecord(2, 2), UnregisterBrokerRecord(2, 2))
        assert not found.ids

    asyncio.run(scenario())


def test_a_fenced_broker_is_forgotten_after_its_moment() -> None:
    async def scenario(loop: SimLoop) -> None:
        quorum = FakeQuorum()
        found = Lingering(quorum, Timers(SimClock(loop), loop))
        quorum.commit(RegisterBrokerRecord(2, broker_epoch=2, fenced=False))
        quorum.commit(FenceBrokerRecord(2, 2))
        await pass_seconds((LINGER_MS - 1) / 1000)
        assert list(found.ids) == [2]
        await pass_seconds((2 * TICK_MS) / 1000)
        assert not found.ids

    play_simulated(scenario)
