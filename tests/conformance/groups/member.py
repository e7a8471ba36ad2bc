"""A group member as a process of its own, so that a test can kill it: LIBRARY BOOTSTRAP GROUP TOPIC SESSION_MS
[INSTANCE].

Prints a line of JSON for each change: {"assigned": [0, 2]} and {"read": [partition, offset]}. Each library commits by
itself what was read, at the latest before it gives a partition up. SIGTERM makes it leave. A member of the consumer
protocol also says when: what it {"gets": [0]}, what it {"gives": [0]} up and what was {"lost": [0]}.
"""

import asyncio
import json
import signal
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from time import monotonic
from types import FrameType
from typing import Any

HEARTBEAT_MS = 200


class Life:
    """The process runs until SIGTERM, which ends it between two polls: within one it would break a library's state."""

    goes_on = True


def say(**what: object) -> None:
    print(json.dumps(what), flush=True)


def run_confluent(
    bootstrap: str, group: str, topic: str, session_ms: int, instance: str | None, strategy: str = "range"
) -> None:
    from confluent_kafka import Consumer

    settings: dict[str, Any] = {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "auto.offset.reset": "earliest",
        "session.timeout.ms": session_ms,
        "heartbeat.interval.ms": HEARTBEAT_MS,
        "partition.assignment.strategy": strategy,
    }
    if instance is not None:
        settings["group.instance.id"] = instance
    consumer = Consumer(settings)

    consumer.subscribe([topic])
    last: list[int] = []
    while Life.goes_on:
        message = consumer.poll(0.05)
        assigned = sorted(part.partition for part in consumer.assignment())
        if assigned != last:
            last = assigned
            say(assigned=assigned)
        if message is not None and message.error() is None:
            say(read=[message.partition(), message.offset()])
    consumer.close()


class Committing:
    """Commits what it has said that it has read. `spoken` are the settings of its protocol."""

    def __init__(self, bootstrap: str, group: str, topic: str, instance: str | None, spoken: dict[str, Any]) -> None:
        from confluent_kafka import Consumer

        settings: dict[str, Any] = {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **spoken,
            **({} if instance is None else {"group.instance.id": instance}),
        }
        self.is_incremental = spoken["group.protocol"] == "consumer"
        self.topic, self.positions = topic, dict[int, int]()
        self.assigned: list[int] = []
        self.consumer = Consumer(settings)
        self.consumer.subscribe([topic], on_assign=self.gets, on_revoke=self.gives, on_lost=self.loses)

    def gets(self, consumer: Any, parts: Any) -> None:
        say(gets=[part.partition for part in parts], at=monotonic())
        if self.is_incremental:
            consumer.incremental_assign(parts)
        else:
            consumer.assign(parts)

    def gives(self, consumer: Any, parts: Any) -> None:
        indexes = [part.partition for part in parts]
        self.commit(index for index in indexes if index in self.positions)
        say(gives=indexes, at=monotonic())
        self.unassign(consumer, parts)

    def loses(self, consumer: Any, parts: Any) -> None:
        say(lost=[part.partition for part in parts], at=monotonic())
        self.unassign(consumer, parts)

    def unassign(self, consumer: Any, parts: Any) -> None:
        if self.is_incremental:
            consumer.incremental_unassign(parts)
        else:
            consumer.unassign()

    def commit(self, indexes: Iterable[int]) -> None:
        from confluent_kafka import KafkaException, TopicPartition

        offsets = [TopicPartition(self.topic, index, self.positions[index]) for index in indexes]
        with suppress(KafkaException):  # the coordinator may be away; who has the partition next reads it again
            if offsets:
                self.consumer.commit(offsets=offsets, asynchronous=False)

    def read(self) -> None:
        messages = [message for message in self.consumer.consume(200, 0.1) if message.error() is None]
        assigned = sorted(part.partition for part in self.consumer.assignment())
        if assigned != self.assigned:
            self.assigned = assigned
            say(assigned=assigned)
        read = dict[int, int]()
        for message in messages:
            index, offset = message.partition(), message.offset()
            if index is not None and offset is not None:
                say(read=[index, offset], at=monotonic())
                read[index] = offset + 1
        self.positions |= read
        self.commit(read)


def run_committing(member: Committing) -> None:
    while Life.goes_on:
        member.read()
    member.consumer.close()


def run_consumer_protocol(bootstrap: str, group: str, topic: str, _session_ms: int, instance: str | None) -> None:
    """KIP-848: the coordinator assigns, and gives its session."""
    run_committing(Committing(bootstrap, group, topic, instance, {"group.protocol": "consumer"}))


def run_classic_protocol(bootstrap: str, group: str, topic: str, session_ms: int, instance: str | None) -> None:
    """The classic protocol, eager; what it says is as of the consumer protocol."""
    spoken = {
        "group.protocol": "classic",
        "partition.assignment.strategy": "range",
        "session.timeout.ms": session_ms,
        "heartbeat.interval.ms": HEARTBEAT_MS,
    }
    run_committing(Committing(bootstrap, group, topic, instance, spoken))


def run_kafka_python(bootstrap: str, group: str, topic: str, session_ms: int, instance: str | None) -> None:
    from kafka import ConsumerRebalanceListener, KafkaConsumer
    from kafka.coordinator.assignors.range import RangePartitionAssignor

    class Listener(ConsumerRebalanceListener):  # type: ignore[misc]
        def on_partitions_revoked(self, _revoked: Any) -> None:
            pass

        def on_partitions_assigned(self, _assigned: Any) -> None:
            say(assigned=sorted(part.partition for part in consumer.assignment()))

    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap,
        group_id=group,
        group_instance_id=instance,
        auto_offset_reset="earliest",
        session_timeout_ms=session_ms,
        heartbeat_interval_ms=HEARTBEAT_MS,
        max_poll_interval_ms=60_000,
        partition_assignment_strategy=[RangePartitionAssignor],
    )
    consumer.subscribe([topic], listener=Listener())
    while Life.goes_on:
        # Not shorter: kafka-python 3.0.12 can lose an assignment that arrives as a poll ends, with any broker.
        for records in consumer.poll(1_000).values():
            for record in records:
                say(read=[record.partition, record.offset])
    consumer.close()


def run_aiokafka(bootstrap: str, group: str, topic: str, session_ms: int, _instance: str | None) -> None:
    from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener
    from aiokafka.coordinator.assignors.range import RangePartitionAssignor

    class Listener(ConsumerRebalanceListener):  # type: ignore[misc]
        async def on_partitions_revoked(self, _revoked: Any) -> None:
            pass

        async def on_partitions_assigned(self, assigned: Any) -> None:
            say(assigned=sorted(part.partition for part in assigned))

    async def run() -> None:
        consumer = AIOKafkaConsumer(
            bootstrap_servers=bootstrap,
            group_id=group,
            auto_offset_reset="earliest",
            session_timeout_ms=session_ms,
            heartbeat_interval_ms=HEARTBEAT_MS,
            partition_assignment_strategy=[RangePartitionAssignor],
        )
        consumer.subscribe([topic], listener=Listener())
        await consumer.start()
        stopping = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
        while not stopping.is_set():
            for records in (await consumer.getmany(timeout_ms=50)).values():
                for record in records:
                    say(read=[record.partition, record.offset])
        await consumer.stop()

    asyncio.run(run())


def run_cooperative(bootstrap: str, group: str, topic: str, session_ms: int, instance: str | None) -> None:
    """KIP-429: a rebalance takes away only what another member gets."""
    run_confluent(bootstrap, group, topic, session_ms, instance, "cooperative-sticky")


RUN: dict[str, Callable[[str, str, str, int, str | None], None]] = {
    "cooperative": run_cooperative,
    "confluent_kafka": run_confluent,
    "consumer_protocol": run_consumer_protocol,
    "classic_protocol": run_classic_protocol,
    "kafka_python": run_kafka_python,
    "aiokafka": run_aiokafka,
}


def stop(_number: int, _frame: FrameType | None) -> None:
    Life.goes_on = False


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, stop)
    library, *arguments = sys.argv[1:]
    bootstrap, group, topic, session_ms, *instance = arguments
    RUN[library](bootstrap, group, topic, int(session_ms), instance[0] if instance else None)
