"""`kavka topics`: the topics of a cluster, of any Kafka too, whether a resource declares them or not. It only reads."""

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kavka_cli.local_clusters import add_state_directory
from kavka_cli.output import CommandError, complain, note, say
from kavka_cli.target import Target, add_target, find_target, target_options
from kavka_operator.api.printer_columns import aligned
from kavka_operator.domain import units
from kavka_operator.domain.observed import SeenPartition
from kavka_operator.kafka.admin import AdminError
from kavka_operator.kafka.client import EARLIEST
from kavka_operator.kafka.offsets_and_lag import Ends, Onlooker

HELP = "List the topics of a cluster, of any Kafka too, with records, sizes and leaders; it only reads."


@dataclass(frozen=True, slots=True)
class Topics:
    """The topics of a cluster. `ends` and `starts` lack a partition that has no leader; `sizes` are bytes of
    all its replicas that were told. `claimed` are those that a resource declares.
    """

    partitions: Sequence[SeenPartition]
    starts: Ends = field(default_factory=dict)
    ends: Ends = field(default_factory=dict)
    sizes: Mapping[tuple[str, int], int] = field(default_factory=dict)
    claimed: frozenset[str] = frozenset()

    def by_name(self) -> dict[str, list[SeenPartition]]:
        """The partitions of each topic, in order."""
        found: dict[str, list[SeenPartition]] = {}
        for partition in sorted(self.partitions, key=lambda partition: partition.key):
            found.setdefault(partition.topic, []).append(partition)
        return found

    def records(self, partitions: Sequence[SeenPartition]) -> int | None:
        """The offsets between the first record and the end; None where a partition has no leader."""
        keys = [partition.key for partition in partitions]
        if not all(key in self.starts and key in self.ends for key in keys):
            return None
        return sum(self.ends[key] - self.starts[key] for key in keys)

    def size_bytes(self, partitions: Sequence[SeenPartition]) -> int | None:
        """The bytes of all replicas; None where no broker told of one."""
        sizes = [self.sizes[partition.key] for partition in partitions if partition.key in self.sizes]
        return sum(sizes) if sizes else None


def add_options(parser: ArgumentParser) -> None:
    """Add the options of `kavka topics`."""
    add_state_directory(parser)
    add_target(parser, has_pages=False)
    words = "Only this topic, partition by partition; may be given more than once."
    parser.add_argument("--topic", "-t", action="append", default=[], metavar="TOPIC", help=words)
    parser.add_argument("--output", "-o", choices=("table", "json", "name"), default="table", help="Output format.")


def run(options: Namespace) -> int:
    """Print the topics; the exit code."""
    try:
        found = _topics(find_target(target_options(options)), options.topic)
    except (CommandError, AdminError) as error:
        return complain(error)
    match options.output:
        case "json":
            say(json.dumps({"topics": list(as_documents(found))}, indent=2))
        case "name":
            say("\n".join(found.by_name()))
        case _ if not found.partitions:
            note("no topics")
        case _:
            say(aligned(list(partition_rows(found) if options.topic else topic_rows(found))))
    return 0


def topic_rows(topics: Topics) -> Iterator[list[str]]:
    """A line for each topic."""
    yield ["TOPIC", "PARTITIONS", "REPLICAS", "UNDER-REPLICATED", "RECORDS", "SIZE", "RESOURCE"]
    for name, partitions in topics.by_name().items():
        size = topics.size_bytes(partitions)
        yield [
            name,
            str(len(partitions)),
            str(max(len(partition.replicas) for partition in partitions)),
            str(sum(len(partition.isr) < len(partition.replicas) for partition in partitions)),
            units.exact(topics.records(partitions)),
            units.UNKNOWN if size is None else units.size(size),
            "yes" if name in topics.claimed else "",
        ]


def partition_rows(topics: Topics) -> Iterator[list[str]]:
    """A line for each partition."""
    yield ["TOPIC", "PARTITION", "LEADER", "REPLICAS", "IN SYNC", "START", "END", "SIZE"]
    for partition in (partition for several in topics.by_name().values() for partition in several):
        size = topics.sizes.get(partition.key)
        yield [
            partition.topic,
            str(partition.index),
            "none" if partition.leader is None else str(partition.leader),
            ",".join(map(str, partition.replicas)),
            ",".join(map(str, partition.isr)),
            units.exact(topics.starts.get(partition.key)),
            units.exact(topics.ends.get(partition.key)),
            units.UNKNOWN if size is None else units.size(size),
        ]


def as_documents(topics: Topics) -> Iterator[dict[str, Any]]:
    """The topics as programs read them; null is what the cluster did not tell."""
    for name, partitions in topics.by_name().items():
        yield {
            "name": name,
            "hasResource": name in topics.claimed,
            "records": topics.records(partitions),
            "sizeBytes": topics.size_bytes(partitions),
            "partitions": [
                {
                    "partition": partition.index,
                    "leader": partition.leader,
                    "replicas": list(partition.replicas),
                    "isr": list(partition.isr),
                    "startOffset": topics.starts.get(partition.key),
                    "endOffset": topics.ends.get(partition.key),
                    "sizeBytes": topics.sizes.get(partition.key),
                }
                for partition in partitions
            ],
        }


def _topics(target: Target, names: Sequence[str]) -> Topics:
    """Ask a cluster for its topics, or for those of these names. Raises CommandError and AdminError."""
    client = Onlooker(target.bootstrap, target.security)
    try:
        members = client.members()
        wanted = [partition for partition in members.partitions if not names or partition.topic in names]
        if missing := set(names) - {partition.topic for partition in wanted}:
            raise CommandError(f"there is no topic {', '.join(sorted(missing))}, or it may not be described")
        sizes: dict[tuple[str, int], int] = {}
        for broker in members.brokers:
            _add_sizes(client, broker, sizes)
        return Topics(wanted, client.ends(wanted, EARLIEST), client.ends(wanted), sizes, target.claimed)
    finally:
        client.close()


def _add_sizes(client: Onlooker, broker: int, sizes: dict[tuple[str, int], int]) -> None:
    """Add the replicas of a broker; what it does not tell is noted."""
    try:
        for key, size in client.log_dirs(broker).sizes.items():
            sizes[key] = sizes.get(key, 0) + size
    except AdminError as error:
        note(f"sizes are incomplete: {error}")
