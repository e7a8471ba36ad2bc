"""Rebalances of KIP-848 and share groups: members that join together, and one that joins or leaves a group that stands.

python -m bench.rebalances                         10 members and 900 partitions, 1,000 members and 1,000 partitions
python -m bench.rebalances --interval 0            without the second between two assignments (KIP-1263)
python -m bench.rebalances --groups share          share groups (KIP-932), of 10 and of 500 members

Members do what Java's consumer does: they follow an answer at once and say so in their next heartbeat, and otherwise
wait for the interval that the broker tells. Between two rebalances a group rests for as long as the second assignment
would have to wait for the first. A rebalance is over when each partition is with one member, of a share
group with one at least, the numbers of two members' partitions differ by one at most, and all are in one epoch.
"""

import argparse
import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import confluent_kafka.admin as kafka_admin
from confluent_kafka import KafkaException

from bench import machine, processes, topics
from bench.__main__ import PRODUCTS, Run
from bench.brokers import Broker, Product
from bench.group_wire import NOT_YET, Heard, heard_in, heartbeat_frame, share_heartbeat_frame
from bench.measure import Measure
from bench.script import measuring

SHAPES: Final = {"consumer": ((10, 900), (1_000, 1_000)), "share": ((10, 900), (500, 1_000))}
SETTINGS: Final = {
    "consumer": "group.consumer.assignment.interval.ms={}\n",
    "share": "group.share.assignment.interval.ms={}\ngroup.share.max.size=1000\n"
    "share.coordinator.state.topic.replication.factor=1\nshare.coordinator.state.topic.min.isr=1\n",
}
SECONDS_MAX: Final = 180.0
LOOK_SECONDS: Final = 0.01
AGAIN_SECONDS: Final = 0.1
SETTLE_SECONDS: Final = 3.0


@dataclass(slots=True)
class Member:
    """One consumer, and what it has heard."""

    group: str
    name: str
    topic: str
    is_share: bool = False
    epoch: int = 0
    owned: dict[bytes, set[int]] = field(default_factory=dict)
    heartbeats: int = 0
    lost: int = 0  # partitions that were taken from it
    epochs: set[int] = field(default_factory=set)

    @property
    def count(self) -> int:
        return sum(map(len, self.owned.values()))

    async def live(self, port: int) -> None:
        """Join, and follow what is answered, until the task is cancelled; then leave."""
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        says_all, has_moved = True, True
        try:
            while True:
                heard = await self._beat(reader, writer, says_all=says_all, says_owned=has_moved)
                if heard.error in NOT_YET:
                    await asyncio.sleep(AGAIN_SECONDS)
                    continue
                if heard.error:
                    raise processes.ClientError(f"{self.name}: a heartbeat was refused with error {heard.error}")
                says_all, has_moved = False, self._follow(heard)
                if not has_moved:
                    await asyncio.sleep(heard.interval_ms / 1000)
        except asyncio.CancelledError:
            self.epoch = -1
            await self._beat(reader, writer, says_all=False, says_owned=False)
        finally:
            writer.close()

    async def _beat(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, says_all: bool, says_owned: bool
    ) -> Heard:
        owned, topic = self.owned if says_owned else None, self.topic if says_all else None
        writer.write(
            share_heartbeat_frame(self.group, self.name, self.epoch, topic)
            if self.is_share
            else heartbeat_frame(self.group, self.name, self.epoch, topic, owned)
        )
        size = int.from_bytes(await reader.readexactly(4), "big")
        self.heartbeats += 1
        return heard_in(memoryview(await reader.readexactly(size))[4:])

    def _follow(self, heard: Heard) -> bool:
        """Do what an answer says; returns whether that moved anything."""
        self.epoch = heard.epoch
        self.epochs.add(heard.epoch)
        if heard.assigned is None:
            return False
        after = {topic_id: set(indexes) for topic_id, indexes in heard.assigned.items() if indexes}
        has_moved = after != self.owned
        self.lost += sum(len(indexes - after.get(topic_id, set())) for topic_id, indexes in self.owned.items())
        self.owned = after
        return has_moved and not self.is_share  # whose heartbeats do not say what a member has


def is_over(members: Sequence[Member], partitions: int) -> bool:
    """Whether the members share the partitions evenly, in one epoch."""
    counts = [member.count for member in members]
    taken = {(topic_id, index) for member in members for topic_id, some in member.owned.items() for index in some}
    is_even = max(counts) - min(counts) <= 1
    is_whole = len(taken) == partitions and (members[0].is_share or sum(counts) == partitions)
    return is_whole and is_even and len({member.epoch for member in members}) == 1


def why_not_over(members: Sequence[Member]) -> str:
    """What the members have, for a reader of a rebalance that does not end."""
    counts, epochs = [member.count for member in members], {member.epoch for member in members}
    return f"{len(members)} members have {min(counts)} to {max(counts)} partitions and are in epochs {sorted(epochs)}"


async def rebalanced(
    broker: Broker, members: Sequence[Member], tasks: Sequence["asyncio.Task[None]"], partitions: int
) -> dict[str, float]:
    """Wait for the end of a rebalance; returns what it took. Raises what has ended a member."""
    lost, beats = sum(member.lost for member in members), sum(member.heartbeats for member in members)
    for member in members:
        member.epochs.clear()
    with machine.Meter(broker.pid) as meter:
        began = time.perf_counter()
        while not is_over(members, partitions):
            for task in tasks:
                if task.done():
                    task.result()
            if time.perf_counter() - began > SECONDS_MAX:
                words = f"no end of a rebalance after {SECONDS_MAX:g} s: {why_not_over(members)}"
                raise processes.ClientError(f"{broker.name}: {words}")
            await asyncio.sleep(LOOK_SECONDS)
        seconds = time.perf_counter() - began
    return {
        "rebalance_seconds": seconds,
        "broker_cpu_seconds": meter.cost.broker.total,
        "partitions_moved": sum(member.lost for member in members) - lost,
        "epochs_entered": len({epoch for member in members for epoch in member.epochs}),
        "heartbeats": sum(member.heartbeats for member in members) - beats,
    }


@dataclass(frozen=True, slots=True)
class Shape:
    """A group: its members, the partitions of its topic, and how long it rests between two rebalances."""

    members: int
    partitions: int
    topic: str
    is_share: bool = False
    rest_seconds: float = 0.0


async def play(broker: Broker, shape: Shape, record: "Recorder") -> None:
    """All members join together; one more joins; one leaves."""
    topic, partitions, is_share = shape.topic, shape.partitions, shape.is_share
    members = [Member(topic, f"member-{number:04}", topic, is_share) for number in range(shape.members)]
    tasks = [asyncio.create_task(member.live(broker.port)) for member in members]
    try:
        record("join together", await rebalanced(broker, members, tasks, partitions))
        await asyncio.sleep(shape.rest_seconds)
        members.append(Member(topic, "one-more", topic, is_share))
        tasks.append(asyncio.create_task(members[-1].live(broker.port)))
        record("one joins", await rebalanced(broker, members, tasks, partitions))
        await asyncio.sleep(shape.rest_seconds)
        tasks[0].cancel()
        await asyncio.gather(*tasks[:1], return_exceptions=True)
        record("one leaves", await rebalanced(broker, members[1:], tasks[1:], partitions))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class Recorder:
    """Records what a rebalance of a shape took."""

    def __init__(self, run: Run, broker: str, shape: str) -> None:
        self._run = run
        self._broker = broker
        self._shape = shape

    def __call__(self, what: str, figures: dict[str, float]) -> None:
        self._run.record(Measure("rebalances", f"{self._shape}: {what}", self._broker, 0, figures))


def take(product: Product, directory: Path, groups: str, interval_ms: int, run: Run) -> None:
    broker = Broker(product, directory)
    broker.format()
    with (directory / "server.properties").open("a") as properties:
        properties.write(SETTINGS[groups].format(interval_ms))
    broker.start()
    admin = kafka_admin.AdminClient({"bootstrap.servers": broker.bootstrap})
    try:
        asyncio.run(warmed(broker, admin, is_share=groups == "share"))
        for count, partitions in SHAPES[groups]:
            topic = f"rebalance-{count}"
            topics.create(admin, topic, partitions)
            time.sleep(SETTLE_SECONDS)  # a coordinator of Apache Kafka hears of the topic a little later
            recorder = Recorder(run, broker.name, f"{count:,} members, {partitions:,} partitions")
            shape = Shape(count, partitions, topic, groups == "share", interval_ms / 1000)
            asyncio.run(play(broker, shape, recorder))
    finally:
        broker.stop()


async def warmed(broker: Broker, admin: kafka_admin.AdminClient, *, is_share: bool) -> None:
    """Play a small group that is not measured. Who looks for its coordinator has the topic of groups made."""
    topics.create(admin, "warm-up", 4)
    with suppress(KafkaException):
        admin.describe_consumer_groups(["warm-up"])["warm-up"].result()
    await play(broker, Shape(2, 4, "warm-up", is_share), lambda *_: None)  # type: ignore[arg-type]


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.rebalances", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--interval", type=int, default=1_000, help="ms between two assignments of a group")
    parser.add_argument("--groups", choices=tuple(SHAPES), default="consumer", help="the protocol (%(default)s)")
    parser.add_argument("--broker", action="append", choices=tuple(PRODUCTS), help="only this one")
    parser.add_argument("--output", type=Path, help="the result's path without ending; bench/results/DATE by default")
    chosen = parser.parse_args()
    told = {"assignment_interval_ms": chosen.interval, "groups": chosen.groups}
    with measuring("rebalances", chosen.output, **told) as (run, root):
        for name in chosen.broker or PRODUCTS:
            take(PRODUCTS[name], root / name, chosen.groups, chosen.interval, run)


if __name__ == "__main__":
    main()
