"""Reads of a Kafka what the doctor judges. Every request is one that changes nothing.

Each question stands for itself: what a cluster refuses to tell, or what there is no time left to ask, is noted as
untold, and the others are asked all the same.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from kafka.protocol.admin import (
    DescribeClusterRequest,
    DescribeConfigsRequest,
    DescribeLogDirsRequest,
)

from kavka_operator.api.quota import AnyEntity
from kavka_operator.doctor.evidence import Broker, Examined, Group, LogDir, Partition
from kavka_operator.domain.observed import SeenPartition
from kavka_operator.domain.transactions import OpenTransaction
from kavka_operator.kafka.admin import AdminError
from kavka_operator.kafka.client import BROKER_RESOURCE, TOPIC_RESOURCE
from kavka_operator.kafka.errors import in_words, raise_for
from kavka_operator.kafka.offsets_and_lag import READ_COMMITTED, Onlooker
from kavka_operator.kafka.record_counts import EARLIEST, LATEST
from kavka_operator.kafka.roll_survey import partitions_of

SECONDS_MAX = 20.0  # one request that is not answered takes 15 s at most, and is the last then
TOPICS_AT_ONCE = 500
TOPIC_KEYS = (
    "cleanup.policy",
    "min.insync.replicas",
    "retention.bytes",
    "retention.ms",
    "segment.bytes",
    "segment.ms",
    "unclean.leader.election.enable",
)

Answer = TypeVar("Answer")


@dataclass(slots=True)
class _Untold:
    """The questions without an answer, and until when there is time to ask."""

    until: float
    words: list[str] = field(default_factory=list)

    def asked(self, what: str, ask: Callable[[], Answer], otherwise: Answer) -> Answer:
        """The answer to a question; what it would be without one is `otherwise`."""
        if time.monotonic() > self.until:
            self.words.append(f"{what}: no time was left to ask")
            return otherwise
        try:
            return ask()
        except AdminError as error:
            self.words.append(f"{what}: {error}")
            return otherwise


class Examiner(Onlooker):
    """A client that asks for all that the doctor judges."""

    def examine(self) -> Examined:
        """The cluster. Raises AdminError where it does not tell even its brokers and topics."""
        untold = _Untold(time.monotonic() + SECONDS_MAX)
        with in_words("describe the cluster"):
            described = self._send(DescribeClusterRequest())
            raise_for(described.error_code, described.error_message)
            metadata = self._metadata()
        seen = partitions_of(metadata, {})
        quotas: dict[AnyEntity, dict[str, float]] = {}
        partitions = self._partitions(seen, untold)
        return Examined(
            brokers=[self._broker(broker, untold) for broker in sorted(described.brokers, key=_id_of)],
            partitions=partitions,
            settings=untold.asked("settings of topics", lambda: self._topics(metadata), {}),
            internal=frozenset(topic.name for topic in metadata.topics if topic.is_internal),
            quotas=untold.asked("quotas", self.quotas, quotas),
            groups=untold.asked("groups", self._groups, None),
            transactions=untold.asked(
                "transactions", lambda: self._transactions(described.brokers, seen, partitions), None
            ),
            untold=tuple(untold.words),
        )

    def _broker(self, told: Any, untold: _Untold) -> Broker:
        number: int = told.broker_id
        broker = Broker(number, told.rack)
        nothing: dict[str, str] = {}
        settings = untold.asked(f"settings of broker {number}", lambda: self._settings(number), nothing)
        directories: Sequence[LogDir] | None = None
        directories = untold.asked(
            f"log directories of broker {number}", lambda: self._directories(number), directories
        )
        return replace(broker, settings=settings, log_dirs=directories)

    def _settings(self, broker: int) -> dict[str, str]:
        make = DescribeConfigsRequest.DescribeConfigsResource
        asked = make(resource_type=BROKER_RESOURCE, resource_name=str(broker), configuration_keys=None)
        with in_words(f"describe the settings of broker {broker}"):
            (result,) = self._send(DescribeConfigsRequest(resources=[asked]), broker).results
            raise_for(result.error_code, result.error_message)
        return {setting.name: setting.value for setting in result.configs if setting.value is not None}

    def _directories(self, broker: int) -> list[LogDir]:
        with in_words(f"describe the log directories of broker {broker}"):
            answer = self._send(DescribeLogDirsRequest(topics=None), broker)
        return [_directory(told) for told in answer.results]

    def _partitions(self, seen: Sequence[SeenPartition], untold: _Untold) -> list[Partition]:
        nothing: dict[tuple[str, int], int] = {}
        starts = untold.asked("first offsets", lambda: self.ends(seen, EARLIEST), nothing)
        ends = untold.asked("last offsets", lambda: self.ends(seen, LATEST), nothing)
        return [
            Partition(
                found.topic,
                found.index,
                found.leader,
                found.replicas,
                found.isr,
                starts.get(found.key),
                ends.get(found.key),
            )
            for found in seen
        ]

    def _topics(self, metadata: Any) -> dict[str, Mapping[str, str]]:
        names = [topic.name for topic in metadata.topics if not topic.error_code]
        found: dict[str, Mapping[str, str]] = {}
        with in_words("describe the settings of topics"):
            for begin in range(0, len(names), TOPICS_AT_ONCE):
                part = names[begin : begin + TOPICS_AT_ONCE]
                told = self._configs(TOPIC_RESOURCE, part, *TOPIC_KEYS, or_none=True)
                found |= {name: {setting.name: setting.value for setting in configs} for name, configs in told.items()}
        return found

    def _groups(self) -> list[Group] | None:
        return [
            Group(name, found.state, None if found.members is None else len(found.members), found.committed, found.lags)
            for name, found in self.groups().items()
        ]

    def _transactions(
        self, brokers: Iterable[Any], seen: Sequence[SeenPartition], partitions: Iterable[Partition]
    ) -> list[OpenTransaction] | None:
        ends = {partition.key: partition.end for partition in partitions if partition.end is not None}
        stable = self.ends(seen, isolation_level=READ_COMMITTED)
        return self.transactions(sorted(map(_id_of, brokers)), seen, ends, stable)


def _id_of(broker: Any) -> int:
    number: int = broker.broker_id
    return number


def _directory(told: Any) -> LogDir:
    error: str | None = None
    if told.error_code:
        error = f"error {told.error_code}"
    total, usable = getattr(told, "total_bytes", None), getattr(told, "usable_bytes", None)
    if not total or usable is None or not 0 <= usable <= total:
        return LogDir(told.log_dir, error)
    return LogDir(told.log_dir, error, 1 - usable / total)
