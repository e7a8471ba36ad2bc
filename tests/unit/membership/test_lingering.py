"""A broker that was fenced is shown for a moment longer."""

import asyncio

import pytest

from kavka_broker.membership import lingering
from kavka_broker.membership.lingering import Lingering
from kavka_broker.protocol.messages.metadata.fence_broker_record import FenceBrokerRecord
from kavka_broker.protocol.messages.metadata.register_broker_record import RegisterBrokerRecord
from kavka_broker.protocol.messages.metadata.unfence_broker_record import UnfenceBrokerRecord
from kavka_broker.protocol.messages.metadata.unregister_broker_record import UnregisterBrokerRecord
from kavka_broker.runtime.clock import SystemClock
from kavka_broker.timers import Timers
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


def test_it_is_forgotten_after_its_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lingering, "LINGER_MS", 1)

    async def scenario() -> None:
        found, quorum = await made()
        quorum.commit(FenceBrokerRecord(2, 2))
        async with asyncio.timeout(20):
            while found.ids:
                await asyncio.sleep(0.001)

    asyncio.run(scenario())
