"""Feature levels: what the whole cluster has agreed to use.

A level is finalised once every broker supports it; records are then written in the form that it brings. The numbers
are Kafka's: those of a cluster that Apache Kafka 4.3 formats are the ones a new Kavka cluster begins with, except
`streams.version`.

`metadata.version` says in which version each kind of record is written, so that brokers of older releases can read it.
Between 3.9 and 4.3 it changed twice: eligible leader replicas (KIP-966) came with 23, cordoned directories (KIP-1066)
with 30. There is no way back below such a level: what it brought would be lost.
"""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.k_raft_version_record import KRaftVersionRecord
from kavka_broker.protocol.messages.metadata.broker_registration_change_record import (
    BrokerRegistrationChangeRecord,
)
from kavka_broker.protocol.messages.metadata.feature_level_record import FeatureLevelRecord
from kavka_broker.protocol.messages.metadata.partition_change_record import PartitionChangeRecord
from kavka_broker.protocol.messages.metadata.partition_record import PartitionRecord
from kavka_broker.protocol.messages.metadata.register_broker_record import RegisterBrokerRecord

METADATA_VERSION: Final = "metadata.version"
KRAFT_VERSION: Final = "kraft.version"
ELR_FEATURE: Final = "eligible.leader.replicas.version"
TRANSACTION_VERSION: Final = "transaction.version"
GROUP_VERSION: Final = "group.version"
SHARE_VERSION: Final = "share.version"
STREAMS_VERSION: Final = "streams.version"

#: The levels of metadata.version by their names.
RELEASES: Final[Mapping[int, str]] = MappingProxyType(
    {
        17: "3.7-IV2",
        18: "3.7-IV3",
        19: "3.7-IV4",
        20: "3.8-IV0",
        21: "3.9-IV0",
        22: "4.0-IV0",
        23: "4.0-IV1",
        24: "4.0-IV2",
        25: "4.0-IV3",
        26: "4.1-IV0",
        27: "4.1-IV1",
        28: "4.2-IV0",
        29: "4.2-IV1",
        30: "4.3-IV0",
    }
)
METADATA_VERSION_OLDEST: Final = 21
METADATA_VERSION_LATEST: Final = 30
ELIGIBLE_LEADERS_SINCE: Final = 23
CORDONED_SINCE: Final = 30
#: Levels that brought records which older releases cannot read.
CHANGES: Final = (ELIGIBLE_LEADERS_SINCE, CORDONED_SINCE)

#: Versions in which records are written from a level on; all other kinds have one version.
RECORD_VERSIONS: Final[Mapping[type[Message], tuple[tuple[int, int], ...]]] = MappingProxyType(
    {
        PartitionRecord: ((ELIGIBLE_LEADERS_SINCE, 2), (0, 1)),
        PartitionChangeRecord: ((ELIGIBLE_LEADERS_SINCE, 2), (0, 1)),
        RegisterBrokerRecord: ((CORDONED_SINCE, 4), (0, 3)),
        BrokerRegistrationChangeRecord: ((CORDONED_SINCE, 3), (0, 2)),
    }
)

#: Levels that a new cluster begins with. `kraft.version` is not among them: it is a control record of the metadata log.
#: Neither is `streams.version`: streams groups are experimental, and an operator switches them on.
INITIAL_LEVELS: Final[Mapping[str, int]] = MappingProxyType(
    {
        METADATA_VERSION: METADATA_VERSION_LATEST,
        "eligible.leader.replicas.version": 1,
        GROUP_VERSION: 1,
        SHARE_VERSION: 1,
        TRANSACTION_VERSION: 2,
    }
)

#: Levels that this broker can read and write, the lowest and the highest. A cluster of an older metadata.version is
#: first upgraded with Kafka's own tools.
SUPPORTED_LEVELS: Final[Mapping[str, tuple[int, int]]] = MappingProxyType(
    {
        METADATA_VERSION: (METADATA_VERSION_OLDEST, METADATA_VERSION_LATEST),
        KRAFT_VERSION: (0, 1),
        "eligible.leader.replicas.version": (0, 1),
        GROUP_VERSION: (0, 1),
        SHARE_VERSION: (0, 1),
        STREAMS_VERSION: (0, 1),
        TRANSACTION_VERSION: (0, 2),
    }
)


assert RELEASES.keys() >= {METADATA_VERSION_OLDEST, METADATA_VERSION_LATEST}, "a bound has no name"
assert max(RELEASES) == METADATA_VERSION_LATEST, "a level is beyond the latest"
assert all(METADATA_VERSION_OLDEST < change <= METADATA_VERSION_LATEST for change in CHANGES), CHANGES
assert INITIAL_LEVELS.keys() <= SUPPORTED_LEVELS.keys(), "a cluster begins with what no broker serves"
assert all(low <= high for low, high in SUPPORTED_LEVELS.values()), "a feature has no level"
assert all(
    kind.VERSIONS[0] <= version <= kind.VERSIONS[1] for kind, since in RECORD_VERSIONS.items() for _, version in since
), "a record is written in a version that it has not"


class Features:
    """The finalised level of each feature, in the order in which they were first finalised."""

    def __init__(self) -> None:
        self.levels: dict[str, int] = {}
        self.epoch = -1  # the offset of the last change: clients keep the newest levels they have seen

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Features) and self.levels == other.levels

    __hash__ = None  # type: ignore[assignment]

    def level(self, name: str) -> int:
        """The level of a feature; 0 for one that is not finalised."""
        return self.levels.get(name, 0)

    @property
    def metadata_version(self) -> int:
        """The level in whose form records are written; the newest until one is finalised."""
        return self.levels.get(METADATA_VERSION, METADATA_VERSION_LATEST)

    def unsupported(self) -> list[str]:
        """Levels that this cluster uses and this broker does not know, each with what to do; it must not start."""
        return [
            _unsupported(name, level, *SUPPORTED_LEVELS.get(name, (0, 0)))
            for name, level in self.levels.items()
            if not SUPPORTED_LEVELS.get(name, (0, 0))[0] <= level <= SUPPORTED_LEVELS.get(name, (0, 0))[1]
        ]

    def copy(self) -> "Features":
        copy = Features()
        copy.levels = dict(self.levels)
        copy.epoch = self.epoch
        return copy

    def replay(self, record: FeatureLevelRecord | KRaftVersionRecord, offset: int) -> None:
        assert offset >= self.epoch, f"the features of {offset} come after those of {self.epoch}"
        self.epoch = offset
        if isinstance(record, KRaftVersionRecord):
            self._finalize(KRAFT_VERSION, record.k_raft_version)
        else:
            self._finalize(record.name, record.feature_level)

    def _finalize(self, name: str, level: int) -> None:
        assert level >= 0, f"{name} has level {level}"
        if level:
            self.levels[name] = level
        else:
            self.levels.pop(name, None)

    def records(self) -> Iterator[FeatureLevelRecord]:
        # metadata.version comes first: it decides how the other records are read.
        # kraft.version is a control record of its own and not one of these records.
        names = self.levels.keys() - {KRAFT_VERSION}
        for name in sorted(names, key=lambda name: (name != METADATA_VERSION, name)):
            yield FeatureLevelRecord(name, self.levels[name])


def record_version(record: Message, metadata_version: int) -> int:
    """The version in which a record is written at this level."""
    for since, version in RECORD_VERSIONS.get(type(record), ()):
        if metadata_version >= since:
            return version
    return record.VERSIONS[1]


def level_in(records: Sequence[Message], otherwise: int) -> int:
    """The level of metadata.version that the records themselves begin with, as a snapshot and a new cluster do."""
    for record in records:
        if isinstance(record, FeatureLevelRecord) and record.name == METADATA_VERSION:
            return record.feature_level
    return otherwise


def named(name: str, level: int) -> str:
    """The name of a feature's level that people know."""
    release = RELEASES.get(level) if name == METADATA_VERSION else None
    return f"{name} {level}" if release is None else f"{name} {level} ({release})"


def is_lossy(before: int, after: int) -> bool:
    """Whether a lower level of metadata.version could not hold records that the higher one brought."""
    assert before >= 0, before
    return any(after < change <= before for change in CHANGES)


def _unsupported(name: str, level: int, low: int, high: int) -> str:
    uses = f"the cluster uses {named(name, level)}, this broker serves {named(name, low)} to {named(name, high)}"
    if level > high:
        return f"{uses}; start a newer version of this broker"
    if name == METADATA_VERSION:
        release = RELEASES[low].partition("-")[0]
        uses += f"; bring the cluster to release {release} or later with the tools of the one that runs it"
        return f"{uses}: kafka-features.sh --bootstrap-server HOST:PORT upgrade --release-version {release}"
    return f"{uses}; raise it: kafka-features.sh --bootstrap-server HOST:PORT upgrade --feature {name}={low}"
