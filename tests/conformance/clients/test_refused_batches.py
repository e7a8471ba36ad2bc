"""librdkafka, whose leader loses a partition and leads it again while three of its batches are in flight.

The first is in the log, and its answer says that the leader has gone; the second is refused; the third comes when the
broker leads again. Told that the third is out of order, librdkafka 2.16 raises its epoch and sends all three from
sequence 0 on: the first is in the log twice.
"""

import asyncio
import functools
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from confluent_kafka import Producer

from kavka_broker.core.metadata.image.topics import PartitionState
from kavka_broker.protocol.records.batch import split_batches
from kavka_broker.replica.leading.partition import Partition
from kavka_broker.replica.writing.produce import Answer, Produce, Produced
from tests.support.in_process import running

ELSEWHERE = b"e" * 16
IN_FLIGHT = 3
FIRST, SECOND, THIRD = range(1, IN_FLIGHT + 1)
SECONDS_MAX = 60.0


class Leadership:
    """Moves the partition away before the second request in flight, and back before the third; answers come then."""

    def __init__(self, partition: Partition) -> None:
        self.requests = 0
        self._partition = partition
        self._here = partition.state._replace(
            replicas=(1, 2), isr=(1, 2), directories=(partition.state.directories[0], ELSEWHERE)
        )
        self._is_back = asyncio.Event()

    def serve(self, run: Callable[[], Produced]) -> Produced:
        """Serve a request; the one before those in flight has the number 0."""
        number, self.requests = self.requests, self.requests + 1
        if number == FIRST:
            self._apply(self._here, 1)
        elif number == SECOND:
            self._apply(self._here._replace(leader=2), 2)
        elif number == THIRD:
            self._apply(self._here._replace(isr=(1,)), 3)
        answer = run()
        if number == THIRD:
            self._is_back.set()
        return answer if number not in (FIRST, SECOND) else asyncio.ensure_future(self._held(answer))

    def _apply(self, state: PartitionState, leader_epoch: int) -> None:
        self._partition.apply(state._replace(leader_epoch=leader_epoch))

    async def _held(self, answer: Produced) -> Answer:
        await self._is_back.wait()
        return await answer if isinstance(answer, Awaitable) else answer


def produce(bootstrap: str, failures: list[object]) -> None:
    """One record, and then three that are in flight together: each is a batch of its own."""
    producer = Producer({
        "bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 0, "batch.num.messages": 1,
    })  # fmt: skip
    for number in range(1 + IN_FLIGHT):
        producer.produce(
            "t", str(number).encode(), on_delivery=lambda error, _: failures.append(error) if error else None
        )
        if number == 0:
            assert producer.flush(SECONDS_MAX) == 0
    assert producer.flush(SECONDS_MAX) == 0


def test_no_record_is_written_twice_when_a_leader_refuses_one_batch_and_could_take_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as inside:
            await inside.create("t")
            partition = inside.broker.partitions.leader("t", 0)
            leadership, run = Leadership(partition), Produce.run
            monkeypatch.setattr(Produce, "run", lambda self: leadership.serve(functools.partial(run, self)))
            failures: list[object] = []

            await asyncio.to_thread(produce, f"127.0.0.1:{inside.server.advertised[0].port}", failures)

            assert not failures
            parts = partition.log.read(0, 1_000_000).parts
            headers = [header for part in parts for header, _ in split_batches(part)]
            assert [(header.producer_epoch, header.base_sequence) for header in headers] == [
                (0, sequence) for sequence in range(1 + IN_FLIGHT)
            ]
            assert leadership.requests == 1 + 2 * IN_FLIGHT, "none was in flight with the others"

    asyncio.run(scenario())
