"""Records for the operator's page, which a child reads of a real broker: its answer, its bounds, and its secrets."""

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from kavka_operator.domain.access import OPEN, Security
from kavka_operator.kafka.admin import AdminError
from kavka_operator.live_views.records import SearchBounds
from kavka_operator.process.console.record_reader import NO_MEMORY, READING, Document, Reading, read_apart
from kavka_pytest.in_process import KafkaInProcess
from tests.support.servers import free_port

ZEROES = 200 * 1024 * 1024


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaInProcess]:
    with KafkaInProcess(tmp_path_factory.mktemp("apart")) as kafka:
        kafka.topic("orders", partitions=2)
        producer = Producer({"bootstrap.servers": str(kafka)})
        for number in range(60):
            producer.produce("orders", json.dumps({"id": number}), f"k-{number}", partition=number % 2)
        assert producer.flush(60) == 0
        kafka.topic("packed")
        packer = Producer(
            {"bootstrap.servers": str(kafka), "compression.type": "gzip", "message.max.bytes": 2 * ZEROES}
        )
        packer.produce("packed", bytes(ZEROES))
        assert packer.flush(60) == 0
        yield kafka


def read(broker: KafkaInProcess, reading: Reading = READING, **fields: str) -> Document:
    found: Document = json.loads(asyncio.run(read_apart(str(broker), OPEN, fields, reading)))
    return found


def test_what_is_asked_for_is_found(broker: KafkaInProcess) -> None:
    found = read(broker, topic="orders", count="3")
    assert len(found["records"]) == 3
    (one,) = read(broker, topic="orders", at="oldest", value='"id": 41')["records"]
    assert (one["partition"], one["offset"], one["key"]) == (1, 20, "k-41")


def test_a_search_ends_at_its_bound(broker: KafkaInProcess) -> None:
    search = SearchBounds(scanned_max=10, seconds_max=10.0)
    found = read(broker, replace(READING, search=search), topic="orders", at="oldest", value="nowhere")
    assert (found["ended"], found["records"]) == ("scanned", [])
    assert found["scanned"] <= search.scanned_max


def test_a_batch_that_unpacks_to_more_than_the_memory_is_refused_in_words(broker: KafkaInProcess) -> None:
    with pytest.raises(AdminError, match=NO_MEMORY):
        read(broker, topic="packed")
    assert read(broker, topic="orders")["records"], "the next one is read"


def test_a_topic_that_is_not_there_is_named(broker: KafkaInProcess) -> None:
    with pytest.raises(AdminError, match='there is no topic "none"'):
        read(broker, topic="none")


def test_brokers_that_do_not_answer_end_it(broker: KafkaInProcess) -> None:
    with pytest.raises(AdminError):
        asyncio.run(read_apart(f"127.0.0.1:{free_port()}", OPEN, {"topic": "t"}, replace(READING, seconds_max=4.0)))


def told_of(process: int) -> list[bytes]:
    """The words and the environment of a process, of which other users of the machine may read some."""
    return [Path(f"/proc/{process}/{name}").read_bytes() for name in ("cmdline", "environ")]


def test_the_list_of_processes_has_no_password(broker: KafkaInProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = list[bytes]()
    start = asyncio.create_subprocess_exec

    async def noted(*words: str, **options: Any) -> asyncio.subprocess.Process:
        child = await start(*words, **options)
        lines.extend(told_of(child.pid))
        return child

    monkeypatch.setattr(asyncio, "create_subprocess_exec", noted)
    security = Security(mechanism="PLAIN", username="operator", password="hunter2")
    with pytest.raises(AdminError):
        asyncio.run(read_apart(str(broker), security, {"topic": "orders"}, replace(READING, seconds_max=4.0)))
    assert len(lines) == 2
    assert not any(b"hunter2" in line for line in lines)
