"""What a person watches of a cluster: topics with their ends and sizes, groups with their lag. Any Kafka answers it.

Each question stands for itself: a cluster that refuses one may answer the others.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import kafka.errors
from kafka.protocol.admin import DescribeClusterRequest, DescribeLogDirsRequest
from kafka.protocol.consumer import ListOffsetsRequest

from kavka_broker.core.config.topic_table import LONG_MAX, RATE_KEYS
from kavka_operator.api.quota import AnyEntity
from kavka_operator.domain.access_rules import Binding
from kavka_operator.domain.observed import SeenBroker, SeenPartition
from kavka_operator.domain.transactions import OpenTransaction
from kavka_operator.kafka import client_quotas
from kavka_operator.kafka.client import BROKER_RESOURCE, TOPIC_RESOURCE, KafkaClient, brokers_of
from kavka_operator.kafka.errors import in_words, raise_for
from kavka_operator.kafka.record_counts import LATEST
from kavka_operator.kafka.roll_survey import partitions_of, quorum_of
from kavka_operator.kafka.share_groups import ShareGroup, describe_share_groups
from kavka_operator.kafka.transactions import open_transactions
from kavka_operator.kafka.users import rules_of

READ_UNCOMMITTED, READ_COMMITTED = 0, 1
SHARE = "share"
CALLBACK = "client.quota.callback.class"
Ends = Mapping[tuple[str, int], int]
NOT_NOW = {
    kafka.errors.NotLeaderForPartitionError.errno,
    kafka.errors.LeaderNotAvailableError.errno,
    kafka.errors.UnknownTopicOrPartitionError.errno,
}


@dataclass(frozen=True, slots=True)
class Members:
    """The brokers of a cluster and what they hold."""

    cluster_id: str
    brokers: Mapping[int, SeenBroker]
    partitions: tuple[SeenPartition, ...]


@dataclass(frozen=True, slots=True)
class Group:
    """A group that reads. `members` is None where the coordinator does not tell them, as DescribeGroups does not tell
    those of KIP-848. Of a share group `committed` are the start offsets that are known, and `lags` what its coordinator
    counts in each partition, as some records behind the start are done; None where it does not know. `lags` is None of
    other groups, and where the coordinator refuses.
    """

    state: str
    kind: str
    members: tuple[tuple[str, str], ...] | None  # client id and host
    committed: Mapping[tuple[str, int], int]
    lags: Mapping[tuple[str, int], int | None] | None = None

    @property
    def partitions(self) -> list[tuple[str, int]]:
        """The partitions that the group has offsets of, in order."""
        return sorted(self.committed if self.lags is None else self.lags)

    @property
    def is_share(self) -> bool:
        return self.kind.lower() == SHARE

    def lag(self, key: tuple[str, int], ends: Ends) -> int | None:
        """Return the records of a partition that the group is yet to read; None where that is not known."""
        if self.is_share:
            lag = None if self.lags is None else self.lags.get(key)
            return 0 if lag is None and ends.get(key) == 0 else lag  # there never was a record
        return max(0, ends[key] - self.committed[key]) if key in ends else None

    def total_lag(self, ends: Ends) -> int | None:
        """Return the lag over all partitions; None where that of one is not known."""
        if self.is_share and self.lags is None:
            return None
        lags = [self.lag(key, ends) for key in self.partitions]
        known = [lag for lag in lags if lag is not None]
        return sum(known) if len(known) == len(lags) else None

    def part(self, keys: Container[tuple[str, int]]) -> "Group":
        """Return the group as it reads these partitions alone."""
        committed = {key: offset for key, offset in self.committed.items() if key in keys}
        lags = None if self.lags is None else {key: lag for key, lag in self.lags.items() if key in keys}
        return replace(self, committed=committed, lags=lags)


@dataclass(frozen=True, slots=True)
class LogDirs:
    """The log directories of one broker: sizes of replicas by partition, and how full the fullest disk is, 1.0 with no
    byte left; None from a broker before Kafka 3.3.
    """

    sizes: Mapping[tuple[str, int], int]
    fullest: float | None


class Onlooker(KafkaClient):
    """A client that only asks. Every method may raise AdminError."""

    def cluster_id(self) -> str:
        """The id of the cluster."""
        with in_words("describe the cluster"):
            described = self._send(DescribeClusterRequest())
            raise_for(described.error_code, described.error_message)
            return str(described.cluster_id)

    def members(self) -> Members:
        """The brokers, and every partition with its replicas."""
        with in_words("describe the cluster"):
            described = self._send(DescribeClusterRequest())
            raise_for(described.error_code, described.error_message)
            metadata = self._metadata()
            return Members(described.cluster_id, brokers_of(described, metadata), partitions_of(metadata, {}))

    def controller(self) -> int | None:
        """The active controller. Metadata of a Kafka with KRaft names any broker in its place."""
        with in_words("describe the quorum"):
            return quorum_of(self._quorum()).leader

    def quotas(self) -> dict[AnyEntity, dict[str, float]]:
        """Every quota, as DescribeClientQuotas tells it."""
        with in_words("describe the quotas"):
            return client_quotas.quotas(self._send)

    def quota_callback(self, broker: int) -> str | None:
        """The class that decides on byte rates instead of Kafka's levels (`client.quota.callback.class`), if any."""
        with in_words(f"describe the settings of node {broker}"):
            found = self._configs(BROKER_RESOURCE, [str(broker)], CALLBACK)[str(broker)]
            return next((setting.value for setting in found if setting.name == CALLBACK and setting.value), None)

    def topic_limits(self, topic: str) -> dict[str, int]:
        """The bytes a second that the topic's config allows, by the keys that are set; Apache Kafka knows none."""
        with in_words(f'describe topic "{topic}"'):
            found = self._configs(TOPIC_RESOURCE, [topic], *sorted(RATE_KEYS))[topic]
            return {setting.name: int(setting.value) for setting in found if int(setting.value or 0) < LONG_MAX}

    def ends(
        self, partitions: Sequence[SeenPartition], moment: int = LATEST, isolation_level: int = READ_UNCOMMITTED
    ) -> dict[tuple[str, int], int]:
        """The offset behind the last record that a reader may get, of each partition that has a leader; the first one
        at `EARLIEST`.
        """
        found: dict[tuple[str, int], int] = {}
        with in_words("list the offsets"):
            for leader in sorted({partition.leader for partition in partitions if partition.leader is not None}):
                led = [partition for partition in partitions if partition.leader == leader]
                answer = self._send(_asks_ends(led, moment, isolation_level), leader)
                for topic in answer.topics:
                    for partition in topic.partitions:
                        if partition.error_code not in NOT_NOW:
                            raise_for(partition.error_code, None)
                            found[topic.name, partition.partition_index] = partition.offset
        return found

    def groups(self) -> dict[str, Group]:
        """Every group, with the offsets that it has committed; share groups with their start offsets."""
        with in_words("describe the groups"):
            listed = {group["group_id"]: group for group in self._client.list_groups()}
            others = sorted(name for name in listed if not _is_share(listed[name]))
            described = self._client.describe_groups(others) if others else {}
            committed = self._client.list_group_offsets(others) if others else {}
            shares = describe_share_groups(self._send, sorted(listed.keys() - set(others)))
        return {
            name: _share_group(listed[name], shares[name])
            if name in shares
            else _group(listed[name], described.get(name), committed.get(name, {}))
            for name in sorted(listed)
        }

    def transactions(
        self, brokers: Iterable[int], partitions: Iterable[SeenPartition], ends: Ends, stable: Ends
    ) -> list[OpenTransaction]:
        """The open transactions, with how far they hold back readers of committed records.

        `ends` are the ends of partitions, `stable` those for readers of committed records, asked for afterwards.
        """
        leaders = {partition.key: partition.leader for partition in partitions if partition.leader is not None}
        with in_words("describe the transactions"):
            return open_transactions(self._send, brokers, leaders, ends, stable)

    def access_rules(self) -> Mapping[str, frozenset[Binding]] | None:
        """Every access rule by its principal; None where no authorizer asks for any."""
        with in_words("describe the access rules"):
            return rules_of(self._send)

    def log_dirs(self, broker: int) -> LogDirs:
        """The log directories of a broker."""
        with in_words(f"describe the log directories of node {broker}"):
            answer = self._send(DescribeLogDirsRequest(topics=None), broker)
        sizes: dict[tuple[str, int], int] = {}
        for directory in answer.results:
            for topic in directory.topics:
                for partition in topic.partitions:
                    key = topic.name, partition.partition_index
                    sizes[key] = sizes.get(key, 0) + partition.partition_size
        return LogDirs(
            sizes,
            max((full for directory in answer.results if (full := _fullness(directory)) is not None), default=None),
        )


def _asks_ends(partitions: Sequence[SeenPartition], moment: int, isolation_level: int) -> ListOffsetsRequest:
    wanted = ListOffsetsRequest.ListOffsetsTopic
    by_topic: dict[str, list[Any]] = {}
    for partition in partitions:
        asked = wanted.ListOffsetsPartition(partition_index=partition.index, current_leader_epoch=-1, timestamp=moment)
        by_topic.setdefault(partition.topic, []).append(asked)
    topics = [wanted(name=name, partitions=asked) for name, asked in by_topic.items()]
    return ListOffsetsRequest(replica_id=-1, isolation_level=isolation_level, topics=topics)


def _is_share(listed: Mapping[str, Any]) -> bool:
    return str(listed.get("group_type") or "").lower() == SHARE


def _share_group(listed: Mapping[str, Any], told: ShareGroup) -> Group:
    state = listed.get("group_state", "") if told.state is None else told.state
    lags = None if told.starts is None else told.lags
    return Group(state, str(listed["group_type"]), told.members, told.starts or {}, lags)


def _group(listed: Mapping[str, Any], described: Mapping[str, Any] | None, committed: Mapping[Any, Any]) -> Group:
    is_told = described is not None and not described["error"]
    members = described["members"] if described is not None and is_told else ()
    state = described["group_state"] if described is not None and is_told else listed.get("group_state", "")
    kind = listed.get("group_type") or listed.get("protocol_type") or ""
    told = tuple((member["client_id"], member["client_host"].lstrip("/")) for member in members)
    offsets = {(key.topic, key.partition): value.offset for key, value in committed.items() if value.offset >= 0}
    return Group(state, str(kind), told if is_told else None, offsets)


def _fullness(directory: Any) -> float | None:
    total, usable = getattr(directory, "total_bytes", None), getattr(directory, "usable_bytes", None)
    return 1 - usable / total if total and usable is not None and 0 <= usable <= total else None
