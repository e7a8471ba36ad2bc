"""`kavka topics`: the topics of a cluster, of any Kafka too, whether a resource declares them or not. It only reads."""

import json
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from kavka_cli.local_clusters import add_state_directory
from kavka_cli.output import CommandError, complain, note, say
from kavka_cli.target import Target, add_target, find_target, target_options
from kavka_operator.api.printer_columns import aligned
from kavka_operator.api.topic import Topic
from kavka_operator.domain import units
from kavka_operator.domain.observed import SeenPartition
from kavka_operator.kafka.admin import AdminError
from kavka_operator.kafka.offsets_and_lag import Ends, Onlooker
from kavka_operator.kafka.record_counts import EARLIEST

HELP = "List the topics of a cluster, of any Kafka too, with records, rates, sizes and leaders; it only reads."
RATE_SECONDS: Final = 2.0
RATE_SECONDS_MIN, RATE_SECONDS_MAX = 0.1, 300.0


@dataclass(frozen=True, slots=True)
class Topics:
    """The topics of a cluster. `ends` and `starts` lack a partition that has no leader; `sizes` are bytes of
    all its replicas that were told. `owners` are the names of the resources that declare topics, by topic; None where
    resources are not known, as of a Kafka that --bootstrap names. `later` are the ends after `seconds`, where the rate
    was asked for.
    """

    partitions: Sequence[SeenPartition]
    starts: Ends = field(default_factory=dict)
    ends: Ends = field(default_factory=dict)
    sizes: Mapping[tuple[str, int], int] = field(default_factory=dict)
    owners: Mapping[str, str] | None = None
    later: Ends | None = None
    seconds: float = 0.0

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

    def records_per_second(self, partitions: Sequence[SeenPartition]) -> float | None:
        """The records that are written a second; None where that was not asked for, or an end is not known."""
        keys = [partition.key for partition in partitions]
        if self.later is None or not all(key in self.later and key in self.ends for key in keys):
            return None
        return sum(max(0, self.later[key] - self.ends[key]) for key in keys) / self.seconds

    def owner(self, topic: str) -> str:
        """The resource of a topic in words: empty where it has none."""
        return units.UNKNOWN if self.owners is None else self.owners.get(topic, "")

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
    words = (
        "Look again after so many seconds, and show the offsets written a second: records, and markers of transactions."
    )
    parser.add_argument("--rate", type=float, nargs="?", const=RATE_SECONDS, metavar="SECONDS", help=words)
    parser.add_argument("--output", "-o", choices=("table", "json", "name"), default="table", help="Output format.")


def run(options: Namespace) -> int:
    """Print the topics; the exit code."""
    try:
        if options.rate is not None and not RATE_SECONDS_MIN <= options.rate <= RATE_SECONDS_MAX:
            raise CommandError(f"--rate is from {RATE_SECONDS_MIN:g} to {RATE_SECONDS_MAX:g} seconds")
        if options.rate is not None and options.output == "name":
            raise CommandError("--rate: names alone have none; write -o table or -o json")
        asked = target_options(options)
        target = find_target(asked)
        owners = None if asked.bootstrap is not None else _owners(target)
        found = _topics(target, options.topic, owners, options.rate or 0.0)
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
    has_rate = topics.later is not None
    rate_head = ["RECORDS/S"] if has_rate else []
    yield ["TOPIC", "PARTITIONS", "REPLICAS", "UNDER-REPLICATED", "RECORDS", *rate_head, "SIZE", "RESOURCE"]
    for name, partitions in topics.by_name().items():
        size = topics.size_bytes(partitions)
        yield [
            name,
            str(len(partitions)),
            str(max(len(partition.replicas) for partition in partitions)),
            str(sum(len(partition.isr) < len(partition.replicas) for partition in partitions)),
            units.exact(topics.records(partitions)),
            *([_rate_text(topics.records_per_second(partitions))] if has_rate else []),
            units.UNKNOWN if size is None else units.size(size),
            topics.owner(name),
        ]


def _rate_text(rate: float | None) -> str:
    return units.UNKNOWN if rate is None else f"{rate:,.1f}"


def partition_rows(topics: Topics) -> Iterator[list[str]]:
    """A line for each partition."""
    has_rate = topics.later is not None
    rate_head = ["RECORDS/S"] if has_rate else []
    yield ["TOPIC", "PARTITION", "LEADER", "REPLICAS", "IN SYNC", "START", "END", *rate_head, "SIZE"]
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
            *([_rate_text(topics.records_per_second([partition]))] if has_rate else []),
            units.UNKNOWN if size is None else units.size(size),
        ]


def as_documents(topics: Topics) -> Iterator[dict[str, Any]]:
    """The topics as programs read them; null is what the cluster did not tell."""
    for name, partitions in topics.by_name().items():
        yield {
            "name": name,
            "resource": None if topics.owners is None else topics.owners.get(name),
            "hasResource": None if topics.owners is None else name in topics.owners,
            "records": topics.records(partitions),
            "recordsPerSecond": topics.records_per_second(partitions),
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


def _owners(target: Target) -> dict[str, str]:
    """The names of the resources that declare topics, by topic."""
    return {
        resource.topic_name: f"topic/{resource.name}" for resource in target.resources if isinstance(resource, Topic)
    }


def _topics(target: Target, names: Sequence[str], owners: Mapping[str, str] | None, rate_seconds: float) -> Topics:
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
        starts, ends, began = client.ends(wanted, EARLIEST), client.ends(wanted), time.monotonic()
        if not rate_seconds:
            return Topics(wanted, starts, ends, sizes, owners)
        time.sleep(rate_seconds)
        later = client.ends(wanted)
        return Topics(wanted, starts, ends, sizes, owners, later, time.monotonic() - began)
    finally:
        client.close()


def _add_sizes(client: Onlooker, broker: int, sizes: dict[tuple[str, int], int]) -> None:
    """Add the replicas of a broker; what it does not tell is noted."""
    try:
        for key, size in client.log_dirs(broker).sizes.items():
            sizes[key] = sizes.get(key, 0) + size
    except AdminError as error:
        note(f"sizes are incomplete: {error}")
