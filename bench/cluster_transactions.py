"""Transactions of a cluster: with three replicas, and of very many ids that nobody uses any more.

With three replicas a commit waits for the followers twice: for the decision, and for what was written before it. The
producers are those of `bench.transactions`; a bare socket asks the coordinator, and another one the leader.

Ten thousand ids: what making them costs, what the broker holds and does while they are idle, and what their expiry
costs a producer that goes on meanwhile. For that a broker of its own has ids expire after a minute.
"""

import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from bench import machine, topics, transaction_wire, wire
from bench.measure import Measure
from bench.repetitions import percentile
from bench.sections import Record
from bench.three_brokers import Trio
from bench.transactions import AGAIN_SECONDS, SECONDS, Shape, Transact, asked, confluent, end_to_end, together

REPLICAS: Final = 3
SHAPES: Final = ((1, 1), (10, 1), (1000, 1))  # records of a transaction, partitions
PRODUCERS: Final = (1, 8)
READS: Final = 100
IDS: Final = 10_000
EXPIRATION_MS: Final = 60_000
CHECK_MS: Final = 5_000
IDLE_SECONDS: Final = 20.0
EXPIRED_SECONDS_MAX: Final = 180.0
EXPIRING: Final = f"""
transactional.id.expiration.ms={EXPIRATION_MS}
transaction.remove.expired.transaction.cleanup.interval.ms={CHECK_MS}
"""


def replicated(trio: Trio, _: object, repetition: int, record: Record) -> None:
    """Transactions a second and the time of a commit, by both generations of clients; then what a reader waits."""
    for records, partitions in SHAPES:
        for count in PRODUCERS:
            for client in ("version 1 (confluent-kafka)", "version 2 (bare sockets)"):
                shape = Shape(records, partitions, count, client)
                record(measured(trio, shape, SECONDS, repetition))
    with topics.topic(trio.bootstrap, 1, REPLICAS) as topic:
        trio.wait_whole(topic, 1)
        shape = Shape(1, 1, 1, "confluent-kafka, until it is read, 3 replicas")
        with machine.Meter(*trio.pids) as meter:
            samples = end_to_end(trio, topic, shape, READS)
    figures = {"commit_p50_ms": percentile(samples, 50), "commit_p99_ms": percentile(samples, 99)}
    record(Measure("transactions", shape.case, trio.name, repetition, figures, meter.cost.others_cores))


def measured(trio: Trio, shape: Shape, seconds: float, repetition: int) -> Measure:
    """So many producers, each of which begins its next transaction when the last is committed."""
    with topics.topic(trio.bootstrap, shape.partitions, REPLICAS) as topic:
        trio.wait_whole(topic, shape.partitions)
        connect = confluent if shape.client.startswith("version 1") else bare
        producers = [connect(trio, topic, f"{topic}-{number}", shape) for number in range(shape.producers)]
        together(producers, seconds / 10)
        with machine.Meter(*trio.pids) as meter:
            began = time.perf_counter()
            commits_ms = together(producers, seconds)
            taken = time.perf_counter() - began
    figures = {
        "transactions_per_second": len(commits_ms) / taken,
        "commit_p50_ms": percentile(commits_ms, 50),
        "commit_p99_ms": percentile(commits_ms, 99),
        "cpu_microseconds_per_operation": meter.cost.broker.total / len(commits_ms) * 1e6,
    }
    case = f"{shape.case}, 3 replicas"
    return Measure("transactions", case, trio.name, repetition, figures, meter.cost.others_cores)


def bare(trio: Trio, topic: str, transactional_id: str, shape: Shape) -> Transact:
    """A producer of version 2, over a socket to the coordinator and one to the leader of the first partition."""
    coordinator = wire.Connection(coordinator_port(trio.members[0].port, transactional_id))
    leader = wire.Connection(trio.leader_of_most(topic).port)
    identity = asked(coordinator, transaction_wire.init_producer_frame(transactional_id))
    sequence = 0

    def transact() -> float:
        nonlocal identity, sequence
        batch = transaction_wire.batch(identity, sequence, shape.records, b"x" * 100)
        frame = transaction_wire.produce_frame(transactional_id, topic, [batch])
        while error := transaction_wire.produce_error(leader.ask(frame)):
            if error not in transaction_wire.RETRIABLE:
                raise wire.WireError(f"Produce was answered with error {error}")
            time.sleep(AGAIN_SECONDS)
        began = time.perf_counter()
        following = asked(coordinator, transaction_wire.end_frame(transactional_id, identity))
        taken_ms = (time.perf_counter() - began) * 1000
        sequence = 0 if following != identity else sequence + shape.records
        identity = following
        return taken_ms

    return transact


def coordinator_port(port: int, transactional_id: str) -> int:
    """The port of an id's coordinator; the first to ask makes the topic of transactions. Raises WireError."""
    deadline = time.monotonic() + EXPIRED_SECONDS_MAX
    with wire.Connection(port) as connection:
        while time.monotonic() < deadline:
            error, found = transaction_wire.coordinator_in(
                connection.ask(transaction_wire.find_coordinator_frame(transactional_id))
            )
            if not error:
                return found
            time.sleep(0.1)
    raise wire.WireError(f"{transactional_id} has no coordinator")


# --- ids that nobody uses ---------------------------------------------------------------------------------------------


def idle_ids(trio: Trio, _: object, repetition: int, record: Record) -> None:
    """Ten thousand ids on one broker, until they have expired."""
    with alone(trio) as single:
        (broker,) = single.members
        connection = wire.Connection(coordinator_port(broker.port, "first"))
        with machine.Meter(broker.pid) as making:
            for number in range(IDS):
                asked(connection, transaction_wire.init_producer_frame(f"idle-{number}"))
        resident = machine.rss_bytes(broker.pid) / 2**20
        with machine.Meter(broker.pid) as idle:
            time.sleep(IDLE_SECONDS)
        if listed(connection) < IDS:
            raise wire.WireError(f"{trio.name}: some of the {IDS:,} ids have expired already: the machine is too slow")
        with topics.topic(single.bootstrap, 1) as topic:
            commits_ms, expiring = until_expired(single, topic, connection)
        wall = idle.cost.wall_seconds
    for what, cost in {
        f"make {IDS:,} transactional ids, CPU s": making.cost.broker.total,
        f"make {IDS:,} transactional ids, s": making.cost.wall_seconds,
        f"RSS with {IDS:,} idle transactional ids, MiB": resident,
        f"idle CPU with {IDS:,} transactional ids, % of a core": idle.cost.broker.total / wall * 100,
        f"commit p99 until {IDS:,} ids have expired, ms": percentile(commits_ms, 99),
        f"longest commit until {IDS:,} ids have expired, ms": commits_ms[-1],
    }.items():
        record(Measure("transactions", what, trio.name, repetition, {"cost": cost}, expiring.cost.others_cores))


def until_expired(single: Trio, topic: str, connection: wire.Connection) -> tuple[list[float], machine.Meter]:
    """The commits, in ms, of a producer that goes on until the idle ids are gone. Raises WireError."""
    shape = Shape(1, 1, 1, "")
    transact = confluent(single, topic, "busy", shape)
    is_over = threading.Event()
    commits_ms: list[float] = []

    def go_on() -> None:
        while not is_over.is_set():
            commits_ms.append(transact())
            time.sleep(0.01)

    deadline = time.monotonic() + EXPIRED_SECONDS_MAX
    thread = threading.Thread(target=go_on)
    with machine.Meter(single.members[0].pid) as meter:
        thread.start()
        try:
            while (left := listed(connection)) > 1:
                if time.monotonic() > deadline:
                    raise wire.WireError(f"{single.name}: {left:,} ids are still there")
                time.sleep(0.5)
        finally:
            is_over.set()
            thread.join()
    return sorted(commits_ms), meter


def listed(connection: wire.Connection) -> int:
    """How many ids the broker lists."""
    return transaction_wire.listed_in(connection.ask(transaction_wire.list_frame()))


@contextmanager
def alone(trio: Trio) -> Iterator[Trio]:
    """A single broker of the same product, whose ids expire soon. The three go on beside it, and are idle."""
    with tempfile.TemporaryDirectory(prefix="kavka-bench-ids-") as directory:
        single = Trio(trio.product, Path(directory), (1,))
        (member,) = single.members
        config = member.directory / "server.properties"
        config.write_text(config.read_text() + EXPIRING)
        single.start()
        try:
            yield single
        finally:
            single.stop()
