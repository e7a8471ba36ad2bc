"""The first records of a new log wait for threads to sync the topic's id: the loop, which serves all, does not."""

import asyncio
import threading
import time
from pathlib import Path

import pytest

from kavka_broker.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kavka_broker.protocol.messages.produce_response import ProduceResponse
from kavka_broker.protocol.records.record import build_batch
from kavka_broker.replica.hosting.log_opener import Openings
from kavka_broker.storage.durability import Durability
from kavka_broker.storage.log_manager import LogManager
from tests.support.in_process import running
from tests.unit.coordinator.calls import find, stable

VERSION = 10
REQUESTS = 3


def request() -> ProduceRequest:
    batch = build_batch([(None, b"v")], timestamp_ms=time.time_ns() // 1_000_000)
    return ProduceRequest(
        acks=-1, timeout_ms=10_000, topic_data=[TopicProduceData("t", partition_data=[PartitionProduceData(0, batch)])]
    )


class Gate:
    """Threads sync ids when `may_sync` is set. `syncing` synced the topic's; `waiting` counts threads that waited."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, topic: str) -> None:
        self.may_sync = threading.Event()
        self.syncing: list[int] = []
        self.waiting = 0
        secure, secured = LogManager.secure, Openings.secured

        def secure_when_told(logs: LogManager) -> None:
            self.may_sync.wait(60)
            secure(logs)

        def note_thread(durability: Durability, *, is_named: bool) -> None:
            if durability._state.name.topic == topic:
                self.syncing.append(threading.get_ident())

        async def note_waiting(openings: Openings) -> None:
            self.waiting += 1
            await secured(openings)

        monkeypatch.setattr(LogManager, "secure", secure_when_told)
        monkeypatch.setattr(Durability, "sync_id", note_thread)
        monkeypatch.setattr(Openings, "secured", note_waiting)


def test_first_records_wait_for_the_thread_and_keep_their_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate(monkeypatch, "t")

    async def scenario() -> None:
        async with running(tmp_path) as inside:
            await inside.create("t")
            client = await inside.connect()
            for _ in range(REQUESTS):
                client.send(request(), VERSION)
            async with asyncio.timeout(60):
                while not gate.waiting:
                    await asyncio.sleep(0)
            assert inside.broker.partitions.leader("t", 0).log.log_end_offset == 0
            gate.may_sync.set()
            for offset in range(REQUESTS):
                answer = (await client.receive(ProduceResponse, VERSION)).responses[0].partition_responses[0]
                assert (answer.error_code, answer.base_offset) == (0, offset)

    asyncio.run(scenario())
    assert gate.waiting == 1, "what came behind the first request was not begun before it"
    assert gate.syncing
    assert threading.get_ident() not in gate.syncing


def test_groups_are_served_once_the_ids_of_their_logs_are_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate(monkeypatch, "__consumer_offsets")

    async def scenario() -> None:
        async with running(tmp_path) as inside:
            client = await inside.connect()
            finding = asyncio.ensure_future(find(client, "g"))
            async with asyncio.timeout(60):
                while not gate.waiting:
                    await asyncio.sleep(0)
            groups = inside.broker.groups
            before = groups.is_loading
            gate.may_sync.set()
            await finding
            assert (before, groups.is_loading) == (True, False)
            await stable(client)

    asyncio.run(scenario())
    assert gate.syncing
    assert threading.get_ident() not in gate.syncing
