"""Compacted topics on either product: written, cleaned when a test says so, and looked at on the disk or by a consumer.

Whether the cleaner takes a topic is said by `min.cleanable.dirty.ratio`, which may be altered while a server runs: 1 is
never, for no log is dirtier than that.
"""

import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from random import Random
from typing import Final, NamedTuple

import confluent_kafka
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource

from kavka_broker.protocol.records.batch import DELETE_HORIZON_BIT, BatchHeader, split_batches
from kavka_broker.protocol.records.record import Record, read_records
from tests.conformance.side_by_side.products import become
from tests.support.servers import Server

SECONDS_MAX: Final = 90.0
BEGAN_MS: Final = 1_700_000_000_000
NEVER, SOON = "1", "0.01"
#: Settings of the cleaner and of transactions with which no test has to wait.
SETTINGS: Final = {
    "log.cleaner.dedupe.buffer.size": "4000000",
    "log.cleaner.backoff.ms": "100",
    "log.cleaner.min.cleanable.ratio": NEVER,
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
}
Seen = list[tuple[int | None, bytes | None, bytes | None, object]]


class Written:
    """A topic's one partition, and how many records a test has written to it: they are numbered."""

    def __init__(self, server: Server, topic: str, records: int = 120, keys: int = 40) -> None:
        self.server, self.topic = server, topic
        self.number = 0
        self._records, self._keys = records, keys

    def write(self, codec: str = "none", end: str = "", prefix: str = "key") -> None:
        """A round of records, in a transaction where it is to `end`."""
        own: dict[str, object] = {"transactional.id": f"{self.topic}-{codec}"} if end else {}
        producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": self.server.bootstrap,
                "compression.type": codec,
                "enable.idempotence": True,
                # Batches are full ones, or end with the flush: where they end may not depend on how fast this goes.
                "linger.ms": 30_000,
                "batch.num.messages": 30,
                **own,
            }
        )
        if end:
            producer.init_transactions(SECONDS_MAX)
            producer.begin_transaction()
        random = Random(self.number)
        for number in range(self.number, self.number + self._records):
            value = None if random.random() < 0.15 else b"%d " % number + b"payload " * random.randrange(20)
            key = f"{prefix}-{random.randrange(self._keys)}".encode()
            producer.produce(self.topic, value, key, partition=0, timestamp=BEGAN_MS + number, headers={"codec": codec})
        assert producer.flush(SECONDS_MAX) == 0
        if end == "commit":
            producer.commit_transaction(SECONDS_MAX)
        elif end == "abort":
            producer.abort_transaction(SECONDS_MAX)
        self.number += self._records


def alter(server: Server, topic: str, **configs: str) -> None:
    resource = ConfigResource(
        ConfigResource.Type.TOPIC,
        topic,
        incremental_configs=[
            ConfigEntry(name.replace("_", "."), value, incremental_operation=AlterConfigOpType.SET)
            for name, value in configs.items()
        ],
    )
    admin = AdminClient({"bootstrap.servers": server.bootstrap})
    for done in admin.incremental_alter_configs([resource]).values():
        done.result(SECONDS_MAX)


def clean(server: Server, *topics: str) -> None:
    """Have the cleaner go over these topics' one partition, up to the active segment, and no further."""
    for topic in topics:
        alter(server, topic, min_cleanable_dirty_ratio=SOON)
    for topic in topics:
        wait_until(partial(is_clean, server, topic), server)
        alter(server, topic, min_cleanable_dirty_ratio=NEVER)


def wait_until(holds: Callable[[], bool], server: Server) -> None:
    deadline = time.monotonic() + SECONDS_MAX
    while not holds():
        assert time.monotonic() < deadline, server.last_lines()
        time.sleep(0.01)


def is_clean(server: Server, topic: str) -> bool:
    return cleaned_to(server, topic) >= active_base(server, topic)


def cleaned_to(server: Server, topic: str) -> int:
    """Up to where the checkpoint says that it is cleaned."""
    path = server.data / "cleaner-offset-checkpoint"
    lines = path.read_text().splitlines()[2:] if path.exists() else []
    return next((int(line.split()[2]) for line in lines if line.startswith(f"{topic} 0 ")), 0)


def active_base(server: Server, topic: str) -> int:
    return int(max((server.data / f"{topic}-0").glob("*.log")).stem)


class Stand(NamedTuple):
    """What a log holds: the batches of records, the records, and the markers of transactions by their offset."""

    batches: list[BatchHeader]
    records: list[Record]
    markers: dict[int, tuple[int, bytes | None]]  # the producer's id, and which end it is


def on_disk(server: Server, topic: str, producers_known: int = -1) -> Stand:
    """What the cleaning of either product gives alike.

    Producers' ids above `producers_known` are numbers in their order, for either product gives out its own. A delete
    horizon and a leader epoch, of either run's own, are 0, and how well a codec packs is its library's.
    """
    stand = Stand([], [], {})
    for path in sorted((server.data / f"{topic}-0").glob("*.log")):
        for header, batch in split_batches(path.read_bytes()):
            records = read_records(batch)
            if header.is_control:
                stand.markers.update((record.offset, (header.producer_id, record.key)) for record in records)
                continue
            horizon = {"base_timestamp": 0} if header.attributes & DELETE_HORIZON_BIT else {}
            stand.batches.append(header._replace(length=0, crc=0, leader_epoch=0, **horizon))
            stand.records.extend(records)
    later = sorted({one.producer_id for one in stand.batches if one.producer_id > producers_known})
    numbers = {producer_id: number for number, producer_id in enumerate(later, producers_known + 1)}
    batches = [one._replace(producer_id=numbers.get(one.producer_id, one.producer_id)) for one in stand.batches]
    return stand._replace(batches=batches)


def consumed(server: Server, topics: Iterable[str], isolation: str) -> dict[str, Seen]:
    """All records of each topic's one partition, as a consumer gets them."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": server.bootstrap,
            "group.id": "judge",
            "isolation.level": isolation,
            "enable.partition.eof": True,
        }
    )
    seen: dict[str, Seen] = {topic: [] for topic in topics}
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0) for topic in seen])
    unfinished = set(seen)
    while unfinished:
        message = consumer.poll(SECONDS_MAX)
        assert message is not None, f"neither records nor the end after {SECONDS_MAX:g} s"
        topic, error = message.topic() or "", message.error()
        if error is None:
            seen[topic].append((message.offset(), message.key(), message.value(), message.timestamp()))
        elif error.code() == confluent_kafka.KafkaError._PARTITION_EOF:
            unfinished.discard(topic)
    consumer.close()
    return seen


def all_consumed(server: Server, *topics: str) -> dict[str, Seen]:
    isolations = ("read_committed", "read_uncommitted")
    found = {isolation: consumed(server, topics, isolation) for isolation in isolations}
    return {f"{topic} {isolation}": found[isolation][topic] for topic in topics for isolation in isolations}


def copy_of(server: Server, directory: Path, product: str, **settings: str) -> Server:
    """The same node on a copy of its directory, run by `product`, with these settings changed.

    A server that runs writes its checkpoints anew every few seconds; what they are written into is not there for long.
    """
    shutil.copytree(server.directory, directory, ignore=shutil.ignore_patterns("*.tmp"))
    config = directory / "server.properties"
    text = config.read_text().replace(str(server.directory), str(directory))
    config.write_text(text + "".join(f"{key.replace('_', '.')}={value}\n" for key, value in settings.items()))
    copied = Server(list(server.command), server.address, directory)
    become(copied, product)
    return copied


@contextmanager
def running(server: Server) -> Iterator[None]:
    """The server; it is stopped at the end, if the test has not killed it. Copies of a node listen where it did."""
    server.start()
    try:
        yield
    finally:
        server.stop()
