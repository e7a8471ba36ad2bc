"""Many transactional ids, and many producers of a topic: what they take, and how long a start is that reads them.

python -m bench.many_ids                                      500,000 ids, 2 million producers of 100 partitions
python -m bench.many_ids --ids 50000 --producers 200000       less

Flink's exactly-once sink by its default names makes an id for each checkpoint, which stays for a week, and each of its
producers is known in every partition that it has written to, for a day. Here the ids are made by InitProducerId, and
the producers by an idempotent batch of one record in one partition each. Then the broker is stopped and started, and
asked for an id of each kind: it answers for the ids of a partition of `__transaction_state` when it has read it.
"""

import argparse
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Final, TypeVar

from confluent_kafka import admin as kafka_admin

from bench import machine, processes, topics, transaction_wire, wire
from bench.brokers import KAFKA, KAVKA, Broker, compile_kavka
from bench.transactions import VALUE, Shape, asked, confluent

T = TypeVar("T")

CONNECTIONS: Final = 4
IN_FLIGHT: Final = 100
FRAMES_IN_FLIGHT: Final = 10  # of a batch for each partition
TOPIC: Final = "many"
PARTITIONS: Final = 100
FIRST_PRODUCER: Final = 1 << 40  # above all that a broker has given
SERVED_SECONDS_MAX: Final = 600.0
CASE: Final = Shape(1, 1, 1, "many ids")


def take(broker: Broker, ids: int, producers: int) -> None:
    """Print what each step takes."""
    broker.format()
    broker.start()
    confluent(broker, "none", "the first", CASE)  # it waits until there is a coordinator
    told(broker, "before", lambda: None)
    told(broker, f"{ids:,} transactional ids are made", lambda: make_ids(broker, ids))
    create_topic(broker)
    told(broker, f"{producers:,} producers write a record", lambda: make_producers(broker, producers))
    print(f"{broker.name:6} {'stopped':44} {broker.stop():8.2f} s", flush=True)
    print(f"{broker.name:6} {'started, until it answers':44} {broker.start():8.2f} s", flush=True)
    told(broker, "until each of a hundred ids is served", lambda: wait_until_served(broker, ids))
    broker.stop()


def told(broker: Broker, what: str, step: Callable[[], object]) -> None:
    with machine.Meter(broker.pid) as meter:
        step()
    cost = meter.cost
    resident = machine.rss_bytes(broker.pid) / 2**20
    print(
        f"{broker.name:6} {what:44} {cost.wall_seconds:8.2f} s  cpu {cost.broker.total:8.2f} s  "
        f"resident {resident:6.0f} MiB  others {cost.others_cores:4.2f} cores",
        flush=True,
    )


def name_of(number: int) -> str:
    """As Flink names the producers of a checkpoint."""
    return f"sink-0-{number:019}"


def make_ids(broker: Broker, count: int) -> None:
    def ask(share: range) -> None:
        with wire.Connection(broker.port, SERVED_SECONDS_MAX) as connection:
            waiting = list(map(name_of, share))
            while waiting:
                some, waiting = waiting[:IN_FLIGHT], waiting[IN_FLIGHT:]
                frames = [transaction_wire.init_producer_frame(name) for name in some]
                waiting += refused(some, answered(connection, frames, identity_error))

    together(ask, count)


def identity_error(body: memoryview) -> int:
    return transaction_wire.identity_in(body)[0]


def refused(asked_for: Sequence[T], errors: Sequence[int]) -> list[T]:
    """What is to be asked for again. Raises WireError for an error that does not end by itself."""
    for error in errors:
        if error and error not in transaction_wire.RETRIABLE:
            raise wire.WireError(f"the broker answered with error {error}")
    return [each for each, error in zip(asked_for, errors, strict=True) if error]


def create_topic(broker: Broker) -> None:
    """By an admin client that is gone before the broker is stopped."""
    topics.create(kafka_admin.AdminClient({"bootstrap.servers": broker.bootstrap}), TOPIC, PARTITIONS)


def make_producers(broker: Broker, count: int) -> None:
    def write(share: range) -> None:
        with wire.Connection(broker.port, SERVED_SECONDS_MAX) as connection:
            batches = iter(map(first_batch, share))
            while some := list(islice(frames_of(batches), FRAMES_IN_FLIGHT)):
                while some:
                    some = refused(some, answered(connection, some, transaction_wire.produce_error))

    together(write, count)


def first_batch(number: int) -> bytes:
    """The first batch of a producer: one record."""
    identity = transaction_wire.Identity(FIRST_PRODUCER + number, 0)
    return transaction_wire.batch(identity, 0, 1, VALUE, attributes=0)


def frames_of(batches: Iterator[bytes]) -> Iterator[bytes]:
    """A Produce for a batch in each partition."""
    while some := list(islice(batches, PARTITIONS)):
        yield transaction_wire.produce_frame(None, TOPIC, some)


def answered(connection: wire.Connection, frames: Sequence[bytes], read: Callable[[memoryview], int]) -> list[int]:
    """What the answers to requests that are sent together say."""
    connection.send(b"".join(frames))
    return [read(connection.receive_next()) for _ in frames]


def together(work: Callable[[range], None], count: int) -> None:
    """Have each connection do its share, in a thread. Raises what one has raised."""
    errors: list[BaseException] = []

    def run(share: range) -> None:
        try:
            work(share)
        except BaseException as error:  # noqa: BLE001 - raised again where the bench hears it
            errors.append(error)

    step = -(-count // CONNECTIONS)
    shares = [range(begin, min(begin + step, count)) for begin in range(0, count, step)]
    threads = [threading.Thread(target=run, args=(share,)) for share in shares]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def wait_until_served(broker: Broker, ids: int) -> None:
    """Until a hundred ids over all partitions have been given their next epoch."""
    with wire.Connection(broker.port, SERVED_SECONDS_MAX) as connection:
        for number in range(0, ids, max(1, ids // 100)):
            asked(connection, transaction_wire.init_producer_frame(name_of(number)))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.many_ids", description=__doc__)
    parser.add_argument("--ids", type=int, default=500_000)
    parser.add_argument("--producers", type=int, default=2_000_000)
    parser.add_argument("--broker", choices=("kavka", "kafka"), action="append")
    options = parser.parse_args()
    compile_kavka()
    processes.end_all_at_exit()
    directory = Path(tempfile.mkdtemp(prefix="kavka-bench-"))
    try:
        for product in (KAVKA, KAFKA):
            if not options.broker or product.name in options.broker:
                take(Broker(product, directory / product.name), options.ids, options.producers)
    finally:
        processes.stop_all()
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main()
