"""Writes to a topic in transactions, with a client of Python, until it is killed.

    python -m tests.conformance.transactions.writer aiokafka|kafka-python BOOTSTRAP INPUT OUTPUT ID

It reads nothing of INPUT, and OUTPUT is its transactional id. Transaction N writes N to partitions 0 to 2; every
fourth one is aborted. stdout has a line for each: `committed N`, `aborted N`, or `unknown N ERROR`, after which another
producer takes the id over.
"""

import asyncio
import sys
from collections.abc import Callable, Iterator
from itertools import count
from typing import Final

import aiokafka
import kafka
from aiokafka.errors import KafkaError as AiokafkaError
from kafka.errors import KafkaError

PARTITIONS: Final = 3
ABORTED_EACH: Final = 4
SECONDS_MAX: Final = 60.0
AGAIN_SECONDS: Final = 0.2


async def write_by_aiokafka(bootstrap: str, topic: str, numbers: Iterator[int]) -> None:
    """Write until an error; the producer ends with it."""
    producer = aiokafka.AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id=topic)
    try:
        await asyncio.wait_for(producer.start(), SECONDS_MAX)
        for number in numbers:
            try:
                await asyncio.wait_for(transact_by_aiokafka(producer, topic, number), SECONDS_MAX)
            except (AiokafkaError, TimeoutError) as error:
                say("unknown", number, error)
                return
    except (AiokafkaError, TimeoutError) as error:
        print(f"no producer: {error!r}", flush=True)
    finally:
        await producer.stop()


async def transact_by_aiokafka(producer: aiokafka.AIOKafkaProducer, topic: str, number: int) -> None:
    """One transaction. Raises KafkaError."""
    await producer.begin_transaction()
    value = str(number).encode()
    sent = [await producer.send(topic, value, partition=partition) for partition in range(PARTITIONS)]
    await asyncio.gather(*sent)
    if number % ABORTED_EACH:
        await producer.commit_transaction()
        say("committed", number)
    else:
        await producer.abort_transaction()
        say("aborted", number)


def write_by_kafka_python(bootstrap: str, topic: str, numbers: Iterator[int]) -> None:
    """Write until an error; the producer ends with it."""
    producer = kafka.KafkaProducer(bootstrap_servers=bootstrap.split(","), transactional_id=topic)
    try:
        producer.init_transactions()
        for number in numbers:
            try:
                transact_by_kafka_python(producer, topic, number)
            except KafkaError as error:
                say("unknown", number, error)
                return
    except KafkaError as error:
        print(f"no producer: {error!r}", flush=True)
    finally:
        producer.close(timeout=0)


def transact_by_kafka_python(producer: kafka.KafkaProducer, topic: str, number: int) -> None:
    """One transaction. Raises KafkaError."""
    producer.begin_transaction()
    value = str(number).encode()
    sent = [producer.send(topic, value, partition=partition) for partition in range(PARTITIONS)]
    for one in sent:
        one.get(SECONDS_MAX)
    if number % ABORTED_EACH:
        producer.commit_transaction()
        say("committed", number)
    else:
        producer.abort_transaction()
        say("aborted", number)


def say(word: str, number: int, error: BaseException | None = None) -> None:
    """Tell what came of a transaction."""
    print(word, number, *([] if error is None else [repr(error)]), flush=True)


async def by_aiokafka(bootstrap: str, topic: str) -> None:
    numbers = count()
    while True:
        await write_by_aiokafka(bootstrap, topic, numbers)
        await asyncio.sleep(AGAIN_SECONDS)


def by_kafka_python(bootstrap: str, topic: str) -> None:
    numbers = count()
    while True:
        write_by_kafka_python(bootstrap, topic, numbers)


CLIENTS: Final[dict[str, Callable[[str, str], None]]] = {
    "aiokafka": lambda bootstrap, topic: asyncio.run(by_aiokafka(bootstrap, topic)),
    "kafka-python": by_kafka_python,
}

if __name__ == "__main__":
    client, servers, _, output, _ = sys.argv[1:]
    CLIENTS[client](servers, output)
