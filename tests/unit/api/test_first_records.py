"""The first records of a new log wait for threads to sync the topic's id: the loop, which serves all, does not."""

import asyncio
import threading
import time
from pathlib import Path

import pytest

from kavka_broker.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kavka_broker.protocol.messages.produce_response import ProduceResponse
from kavka_broker.protocol.records.record import build_batch
from kavka_broker.replica.openings import Openings
from kavka_broker.storage.log import Log
from kavka_broker.storage.log_manager import LogManager
from tests.support.in_process import running

VERSION = 10
REQUESTS = 3


def request() -> ProduceRequest:
    batch = build_batch([(None, b"v")], timestamp_ms=time.time_ns() // 1_000_000)
    return ProduceRequest(
        acks=-1, timeout_ms=10_000, topic_data=[TopicProduceData("t", partition_data=[PartitionProduceData(0, batch)])]
    )


def test_first_records_wait_for_the_thread_and_keep_their_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_sync, of_loop = threading.Event(), threading.get_ident()
    secure, secured = LogManager.secure, Openings.secured
    syncing, waiting = list[int](), list[None]()

    def secure_when_told(logs: LogManager) -> None:
        may_sync.wait(20)
        secure(logs)

    def note_thread(log: Log, *, is_named: bool) -> None:
        if log.name.topic == "t":
            syncing.append(threading.get_ident())

    async def note_waiting(openings: Openings) -> None:
        waiting.append(None)
        await secured(openings)

    monkeypatch.setattr(LogManager, "secure", secure_when_told)
    monkeypatch.setattr(Log, "sync_id", note_thread)
    monkeypatch.setattr(Openings, "secured", note_waiting)

    async def scenario() -> None:
        async with running(tmp_path) as inside:
            await inside.create("t")
            client = await inside.connect()
            for _ in range(REQUESTS):
                client.send(request(), VERSION)
            async with asyncio.timeout(20):
                while not waiting:
                    await asyncio.sleep(0)
            assert inside.broker.replicas.leader("t", 0).log.log_end_offset == 0
            may_sync.set()
            for offset in range(REQUESTS):
                answer = (await client.receive(ProduceResponse, VERSION)).responses[0].partition_responses[0]
                assert (answer.error_code, answer.base_offset) == (0, offset)

    asyncio.run(scenario())
    assert len(waiting) == 1, "what came behind the first request was not begun before it"
    assert syncing
    assert of_loop not in syncing
