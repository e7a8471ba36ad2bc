"""Feature levels: what the whole cluster has agreed to use.

A level is finalised once every broker supports it; records are then written in the form that it brings. The numbers
are Kafka's: those of a cluster that Apache Kafka 4.3 formats are the ones a new Kavka cluster begins with.
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from kavka_broker.protocol.messages.k_raft_version_record import KRaftVersionRecord
from kavka_broker.protocol.messages.metadata.feature_level_record import FeatureLevelRecord

METADATA_VERSION: Final = "metadata.version"
KRAFT_VERSION: Final = "kraft.version"
ELR_FEATURE: Final = "eligible.leader.replicas.version"

#: 4.3-IV0
METADATA_VERSION_LATEST: Final = 30

#: What a new cluster begins with. `kraft.version` is not among them: it is a control record of the metadata log.
INITIAL_LEVELS: Final[Mapping[str, int]] = MappingProxyType(
    {
        METADATA_VERSION: METADATA_VERSION_LATEST,
        "eligible.leader.replicas.version": 1,
        "group.version": 1,
        "share.version": 1,
        "streams.version": 1,
        "transaction.version": 2,
    }
)

#: What this broker can read and write, lowest and highest level. Records are written in the newest form only, so a
#: cluster of an older metadata.version is first upgraded with Kafka's own tools.
SUPPORTED_LEVELS: Final[Mapping[str, tuple[int, int]]] = MappingProxyType(
    {
        METADATA_VERSION: (METADATA_VERSION_LATEST, METADATA_VERSION_LATEST),
        KRAFT_VERSION: (0, 1),
        "eligible.leader.replicas.version": (0, 1),
        "group.version": (0, 1),
        "share.version": (0, 1),
        "streams.version": (0, 1),
        "transaction.version": (0, 2),
    }
)


class Features:
    """The finalised level of each feature, in the order in which they were first finalised."""

    def __init__(self) -> None:
        self.levels: dict[str, int] = {}
        self.epoch = -1  # the offset of the last change: clients keep the newest levels they have seen

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Features) and self.levels == other.levels

    __hash__ = None  # type: ignore[assignment]

    def level(self, name: str) -> int:
        """0 for one that is not finalised."""
        return self.levels.get(name, 0)

    def unsupported(self) -> list[str]:
        """What this cluster uses and this broker does not know, as `name level`. Such a broker must not start."""
        return [
            f"{name} {level}"
            for name, level in self.levels.items()
            if not SUPPORTED_LEVELS.get(name, (0, 0))[0] <= level <= SUPPORTED_LEVELS.get(name, (0, 0))[1]
        ]

    def replay(self, record: FeatureLevelRecord | KRaftVersionRecord, offset: int) -> None:
        self.epoch = offset
        if isinstance(record, KRaftVersionRecord):
            self._finalize(KRAFT_VERSION, record.k_raft_version)
        else:
            self._finalize(record.name, record.feature_level)

    def _finalize(self, name: str, level: int) -> None:
        if level:
            self.levels[name] = level
        else:
            self.levels.pop(name, None)

    def records(self) -> Iterator[FeatureLevelRecord]:
        # metadata.version comes first: it says how to read the rest.
        # kraft.version is a control record of its own and not one of these.
        names = self.levels.keys() - {KRAFT_VERSION}
        for name in sorted(names, key=lambda name: (name != METADATA_VERSION, name)):
            yield FeatureLevelRecord(name, self.levels[name])
