"""aiokafka: the oldest protocol versions that a living client sends (Metadata 5, OffsetCommit 3, Heartbeat 1)."""

import asyncio

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

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
