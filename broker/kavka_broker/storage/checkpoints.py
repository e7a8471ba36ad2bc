"""Kafka's small text files: a version, a count, and a line an entry.

    0                       0
    2                       2
    orders 0 4711           0 0
    orders 1 4712           1 3300

On the left the offset checkpoints of a log directory (recovery point, high watermark, log start, how far it is
cleaned), on the right the leader epochs of a log: the epoch and its first offset.
"""

from collections.abc import Mapping
from itertools import pairwise
from typing import Final

from crc32c import crc32c

from kavka_broker.storage.disk import Disk
from kavka_broker.storage.disk_errors import NotAFile
from kavka_broker.storage.file_names import PartitionName

RECOVERY_POINTS: Final = "recovery-point-offset-checkpoint"
HIGH_WATERMARKS: Final = "replication-offset-checkpoint"
LOG_STARTS: Final = "log-start-offset-checkpoint"
CLEANED_OFFSETS: Final = "cleaner-offset-checkpoint"

_VERSION: Final = "0"


class MalformedCheckpoint(Exception):
    """A checkpoint cannot be read. Its offsets can be worked out from the logs."""


def _lines(path: str, data: bytes) -> list[list[str]]:
    if not data.endswith(b"\n"):
        # A loss of power may have cut the file: half a number is a number too.
        raise MalformedCheckpoint(f"{path}: the last line is cut")
    try:
        version, count, *lines = data.decode().splitlines()
        if version != _VERSION or int(count) != len(lines):
            raise MalformedCheckpoint(f"{path}: version {version} with {count} entries has {len(lines)} lines")
    except ValueError as problem:
        raise MalformedCheckpoint(f"{path}: {problem}") from None
    return [line.split(" ") for line in lines]


def _text(lines: list[str]) -> bytes:
    return "\n".join([_VERSION, str(len(lines)), *lines, ""]).encode()


def read_offsets(disk: Disk, path: str) -> dict[PartitionName, int]:
    """Read the offsets by partition. Raises MalformedCheckpoint.

    There are none where there is no file, or an empty one of Kafka's cleaner.
    """
    try:
        data = disk.read_file(path)
    except FileNotFoundError:
        return {}
    except NotAFile as problem:
        raise MalformedCheckpoint(str(problem)) from None
    if not data and path.endswith(CLEANED_OFFSETS):
        return {}
    try:
        offsets = {PartitionName(topic, int(partition)): int(offset) for topic, partition, offset in _lines(path, data)}
    except ValueError as problem:
        raise MalformedCheckpoint(f"{path}: {problem}") from None
    if min(offsets.values(), default=0) < 0:
        raise MalformedCheckpoint(f"{path}: a number below 0: {min(offsets.values())}")
    return offsets


def write_offsets(disk: Disk, path: str, offsets: Mapping[PartitionName, int]) -> None:
    assert min(offsets.values(), default=0) >= 0, f"{path}: a number below 0: {min(offsets.values())}"
    disk.write_file(path, _offsets_text(offsets))


def checksum(offsets: Mapping[PartitionName, int]) -> int:
    """Return the CRC of the file in which these offsets are written."""
    return crc32c(_offsets_text(offsets))


def _offsets_text(offsets: Mapping[PartitionName, int]) -> bytes:
    return _text([f"{name.topic} {name.partition} {offset}" for name, offset in sorted(offsets.items())])


def read_epochs(disk: Disk, path: str) -> list[tuple[int, int]] | None:
    """Read epochs with their first offsets. Raises MalformedCheckpoint.

    None where there is no file, or an empty one as Kafka makes it first.
    """
    try:
        data = disk.read_file(path)
    except FileNotFoundError:
        return None
    except NotAFile as problem:
        raise MalformedCheckpoint(str(problem)) from None
    if not data:
        return None
    try:
        entries = [(int(epoch), int(offset)) for epoch, offset in _lines(path, data)]
    except ValueError as problem:
        raise MalformedCheckpoint(f"{path}: {problem}") from None
    if any(min(entry) < 0 for entry in entries):
        raise MalformedCheckpoint(f"{path}: a number below 0: {entries}")
    if entries != sorted(entries) or len({epoch for epoch, _ in entries}) != len(entries):
        raise MalformedCheckpoint(f"{path}: epochs do not ascend: {entries}")
    if any(former[1] >= later[1] for former, later in pairwise(entries)):
        raise MalformedCheckpoint(f"{path}: an epoch begins before the former one has records: {entries}")
    return entries


def write_epochs(disk: Disk, path: str, entries: list[tuple[int, int]], *, durable: bool) -> None:
    assert entries == sorted(entries), f"{path}: epochs do not ascend: {entries}"
    assert all(former[1] < later[1] for former, later in pairwise(entries)), (
        f"{path}: epochs without records: {entries}"
    )
    assert all(epoch >= 0 <= offset for epoch, offset in entries), f"{path}: a number below 0: {entries}"
    disk.write_file(path, _text([f"{epoch} {offset}" for epoch, offset in entries]), durable=durable)
