"""aiokafka: the oldest protocol versions that a living client sends (Metadata 5, OffsetCommit 3, Heartbeat 1)."""

import asyncio

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import ProducerFenced

from tests.conformance.clients.records import COUNT, FIRST_PART, PARTITIONS, RECORDS, Pair, assert_resumed
from tests.support.servers import Server

SECONDS_MAX = 120.0  # of the whole walk


async def create(server: Server, topic: str) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=server.bootstrap)
    await admin.start()
    await admin.create_topics([NewTopic(topic, PARTITIONS, 1)])
    await admin.close()


async def produce(server: Server, topic: str) -> None:
    async with AIOKafkaProducer(bootstrap_servers=server.bootstrap, enable_idempotence=True) as producer:
        sent = [await producer.send(topic, value.encode(), key.encode()) for key, value in RECORDS]
        await asyncio.gather(*sent)


async def consume(server: Server, topic: str, group: str, count: int) -> list[Pair]:
    consumer = AIOKafkaConsumer(
        topic,
        bootstrap_servers=server.bootstrap,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    await consumer.start()
    seen: list[Pair] = []
    while len(seen) < count:
        message = await consumer.getone()
        seen.append((message.key.decode(), message.value.decode()))
    await consumer.commit()
    await consumer.stop()
    return seen


async def walk(server: Server, name: str) -> tuple[list[Pair], list[Pair]]:
    async with asyncio.timeout(SECONDS_MAX):
        await create(server, name)
        await produce(server, name)
        first = await consume(server, name, name, FIRST_PART)
        return first, await consume(server, name, name, COUNT - FIRST_PART)


def test_produce_consume_commit_resume(server: Server, name: str) -> None:
    assert_resumed(*asyncio.run(walk(server, name)))


class Transactional:
    """A producer that has taken its transactional id over."""

    def __init__(self, server: Server, name: str) -> None:
        self._topic = name
        self.producer = AIOKafkaProducer(bootstrap_servers=server.bootstrap, transactional_id=name)

    async def begin(self, value: str) -> None:
        """Begin a transaction and write to it."""
        await self.producer.begin_transaction()
        await self.producer.send_and_wait(self._topic, value.encode(), partition=0)


async def committed(server: Server, topic: str, count: int) -> tuple[list[str], AIOKafkaConsumer]:
    """The first values that a reader of committed records gets, and that reader."""
    consumer = AIOKafkaConsumer(
        topic,
        bootstrap_servers=server.bootstrap,
        group_id=topic,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        isolation_level="read_committed",
    )
    await consumer.start()
    return [(await consumer.getone()).value.decode() for _ in range(count)], consumer


async def walk_in_transactions(server: Server, name: str) -> None:
    await create(server, name)
    mine = Transactional(server, name)
    await mine.producer.start()
    for number in range(4):
        await mine.begin(str(number))
        if number % 2:
            await mine.producer.abort_transaction()
        else:
            await mine.producer.commit_transaction()
    found, consumer = await committed(server, name, 2)
    assert found == ["0", "2"]
    part = TopicPartition(name, 0)
    position = await consumer.position(part)
    for commits in (False, True):
        await mine.begin("with offsets")
        await mine.producer.send_offsets_to_transaction({part: position}, name)
        if commits:
            await mine.producer.commit_transaction()
        else:
            await mine.producer.abort_transaction()
        assert await consumer.committed(part) == (position if commits else None)
    await consumer.stop()

    await mine.begin("of the former")
    next_one = Transactional(server, name)
    await next_one.producer.start()
    with pytest.raises(ProducerFenced):
        await mine.producer.commit_transaction()
    await next_one.begin("of the next")
    await next_one.producer.commit_transaction()
    found, consumer = await committed(server, name, 2)
    assert found == ["with offsets", "of the next"]
    await consumer.stop()
    await mine.producer.stop()
    await next_one.producer.stop()


def test_a_producer_commits_aborts_and_is_fenced(server: Server, name: str) -> None:
    async def limited() -> None:
        async with asyncio.timeout(SECONDS_MAX):
            await walk_in_transactions(server, name)

    asyncio.run(limited())
