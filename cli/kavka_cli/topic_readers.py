"""The readers of a topic: how far groups are behind at both isolation levels, and which transactions hold them back.

With `read_uncommitted` a reader gets every record up to the end of a partition. With `read_committed` it stops at the
last stable offset, the first of the oldest open transaction there.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kavka_cli.output import CommandError
from kavka_cli.target import Target
from kavka_operator.api.printer_columns import aligned
from kavka_operator.domain import units
from kavka_operator.domain.observed import SeenPartition
from kavka_operator.domain.transactions import OpenTransaction
from kavka_operator.kafka.offsets_and_lag import READ_COMMITTED, Ends, Group, Onlooker
from kavka_operator.kafka.record_counts import EARLIEST


@dataclass(frozen=True, slots=True)
class TopicReaders:
    """A topic as its readers meet it. `stable` are the last stable offsets, asked for after `ends`."""

    partitions: Sequence[SeenPartition]
    starts: Ends
    ends: Ends
    stable: Ends
    groups: Mapping[str, Group]
    transactions: Sequence[OpenTransaction]


def read_topic(target: Target, topic: str) -> TopicReaders:
    """Ask a cluster. Raises CommandError where there is no such topic, and AdminError."""
    client = Onlooker(target.bootstrap, target.security)
    try:
        members = client.members()
        partitions = [partition for partition in members.partitions if partition.topic == topic]
        if not partitions:
            raise CommandError(f"there is no topic {topic}, or it may not be described")
        partitions.sort(key=lambda partition: partition.index)
        ends = client.ends(partitions)
        stable = client.ends(partitions, isolation_level=READ_COMMITTED)
        transactions = client.transactions(sorted(members.brokers), partitions, ends, stable)
        return TopicReaders(partitions, client.ends(partitions, EARLIEST), ends, stable, client.groups(), transactions)
    finally:
        client.close()


def as_text(found: TopicReaders) -> str:
    """The tables of readers and of partitions."""
    readers = list(reader_rows(found))
    tables = {"readers": readers if len(readers) > 1 else [["no group has committed an offset"]]}
    tables["partitions"] = list(partition_rows(found))
    return "\n".join(
        f"{title}:\n" + "\n".join(f"  {line}" for line in aligned(rows).splitlines()) for title, rows in tables.items()
    )


def reader_rows(found: TopicReaders) -> Iterator[list[str]]:
    """A line for each group that has an offset in the topic. A share group has the lag of its isolation level."""
    yield ["GROUP", "STATE", "MEMBERS", "LAG READ_UNCOMMITTED", "LAG READ_COMMITTED"]
    keys = {partition.key for partition in found.partitions}
    for name, group in sorted(found.groups.items()):
        part = group.part(keys)
        if part.partitions:
            members = units.UNKNOWN if group.members is None else str(len(group.members))
            lags = [units.exact(part.total_lag(ends)) for ends in (found.ends, found.stable)]
            yield [units.printable(name), group.state, members, *lags]


def partition_rows(found: TopicReaders) -> Iterator[list[str]]:
    """A line for each partition, with the transaction before which readers of committed records stop."""
    yield ["PARTITION", "LEADER", "START", "LAST STABLE", "END", "HELD BACK BY"]
    for partition in found.partitions:
        key = partition.key
        yield [
            str(partition.index),
            "none" if partition.leader is None else str(partition.leader),
            *(units.exact(offsets.get(key)) for offsets in (found.starts, found.stable, found.ends)),
            ", ".join(_holder(transaction) for transaction in found.transactions if key in transaction.holds),
        ]


def _holder(transaction: OpenTransaction) -> str:
    age = "" if transaction.open_seconds is None else f", {units.seconds(transaction.open_seconds)}"
    return f"{units.printable(transaction.name)} ({transaction.state or 'no coordinator knows it'}{age})"
