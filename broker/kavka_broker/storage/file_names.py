"""The names of Kafka's files.

    orders-3/00000000000000368769.log        a segment, named by its first offset
    orders-3/00000000000000368769.index      and its indexes .timeindex, .txnindex
    orders-3/00000000000000368769.snapshot   the producers as they were before this offset
    orders-3/foreign                         Kavka's own: a start has found another log's records in it
    orders-3/00000000000000368769.log.cleaned     what a cleaning is writing
    orders-3/00000000000000368769.log.swap        and what takes the place of segments now
    orders-3.9c27d1f4...-delete/             a deleted log, on its way out
    orders-3.5be1c0aa...-stray/              one that nobody knows, or that is damaged
    orders-3.04b5aa21...-future/             a copy that will take the place of a log in another directory

A topic's name may hold dashes and dots, so the partition is what follows the last dash.
"""

import re
from typing import Final, NamedTuple

LOG: Final = ".log"
OFFSET_INDEX: Final = ".index"
TIME_INDEX: Final = ".timeindex"
TRANSACTION_INDEX: Final = ".txnindex"
SNAPSHOT: Final = ".snapshot"
DELETED: Final = ".deleted"
CLEANED: Final = ".cleaned"
SWAP: Final = ".swap"
SEGMENT_FILES: Final = (LOG, OFFSET_INDEX, TIME_INDEX, TRANSACTION_INDEX)

LEADER_EPOCHS: Final = "leader-epoch-checkpoint"
PARTITION_METADATA: Final = "partition.metadata"
FOREIGN: Final = "foreign"
#: In a stray: since when it is one, in milliseconds.
SINCE: Final = "set-aside"

DELETE_DIRECTORY: Final = "-delete"
FUTURE_DIRECTORY: Final = "-future"
STRAY_DIRECTORY: Final = "-stray"
# A directory's name has room for 255 bytes: 249 of topic and partition, less the id and the suffix.
NAME_BYTES_MAX: Final = 255

#: With so many the name of a segment's file begins.
OFFSET_DIGITS: Final = 20

_PARTITION: Final = re.compile(r"(?P<topic>[a-zA-Z0-9._-]{1,249})-(?P<partition>\d{1,10})")
_OFFSET_FILE: Final = re.compile(r"(?P<offset>\d{20})(?P<suffix>\.[a-z]+)")
_TEMPORARY: Final = r"(?:(?:\.\d+)?\.tmp)?"
_OF_PARTITION: Final = re.compile(
    r"(?:\d{20}\.(?:log|index|timeindex|txnindex|snapshot)(?:\.(?:cleaned|swap|deleted))?"
    rf"|leader-epoch-checkpoint|partition\.metadata|foreign|set-aside){_TEMPORARY}"
)
_OF_METADATA: Final = re.compile(
    r"(?:\d{20}-\d{10}\.checkpoint(?:\.(?:part|deleted))?|quorum-state(?:\.copy)?|synced-offset)" + _TEMPORARY
)


class PartitionName(NamedTuple):
    """What a log directory's name says."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


#: The quorum's own, which is no log of a partition here.
CLUSTER_METADATA: Final = PartitionName("__cluster_metadata", 0)


def parse_partition(directory: str) -> PartitionName | None:
    """The topic and partition of a log directory's name, or None for a directory that is no log."""
    found = _PARTITION.fullmatch(directory)
    return None if found is None else PartitionName(found["topic"], int(found["partition"]))


def parse_future(directory: str) -> PartitionName | None:
    """The topic and partition of a log that is being moved into this directory; None for any other name."""
    if not directory.endswith(FUTURE_DIRECTORY):
        return None
    return parse_partition(directory.removesuffix(FUTURE_DIRECTORY).rpartition(".")[0])


def offset_file(offset: int, suffix: str) -> str:
    assert 0 <= offset < 10**OFFSET_DIGITS, f"no file is named after offset {offset}"
    return f"{offset:020d}{suffix}"


def parse_offset_file(name: str) -> tuple[int, str] | None:
    """The offset and the suffix of a segment's file or a snapshot; None for any other name."""
    found = _OFFSET_FILE.fullmatch(name)
    return None if found is None else (int(found["offset"]), found["suffix"])


def is_partition_file(name: str) -> bool:
    """Whether Kavka or Apache Kafka makes a file of this name in the log of a partition."""
    return _OF_PARTITION.fullmatch(name) is not None


def is_log_file(name: str) -> bool:
    """Whether Kavka or Apache Kafka makes a file of this name in any log, that of the metadata included."""
    return is_partition_file(name) or _OF_METADATA.fullmatch(name) is not None


def is_swap(name: str) -> bool:
    """Whether the file takes the place of a segment's, or does once a start finishes what was begun."""
    return name.endswith(SWAP) and is_partition_file(name)


def aside_directory(partition: PartitionName, unique: str, suffix: str) -> str:
    """The name of a log that is out of service. `unique` keeps two of the same partition apart."""
    tail = f".{unique}{suffix}"
    assert len(tail) < NAME_BYTES_MAX, tail
    name = str(partition)[: NAME_BYTES_MAX - len(tail)] + tail
    assert len(name) <= NAME_BYTES_MAX, f"{name} is no name of a directory"
    return name
