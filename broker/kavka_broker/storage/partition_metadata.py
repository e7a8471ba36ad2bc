"""The file `partition.metadata`: which topic a log belongs to.

By id, so that another topic of the same name is not mistaken for it.

version: 0
topic_id: 8pQhXzKfQ0mZJ6m3oY3c1A

It is synced before the log takes its first record. So one that is missing or torn beside records is damage, and whose
they are nobody knows. A log that is removed where it stands has its file cut to the first line beforehand.
"""

import os
from typing import Final

from kavka_broker.logs import get
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.uuids import ZERO, from_text, to_text
from kavka_broker.storage.disk import Disk
from kavka_broker.storage.file_names import PARTITION_METADATA

log = get("storage")

VERSION: Final = 0
REMOVED: Final = f"version: {VERSION}\n"
HEAD: Final = f"{REMOVED}topic_id: "
UUID_LENGTH: Final = 22
assert HEAD.startswith(REMOVED), "a removal cuts the file to its first line"


def read(disk: Disk, directory: str) -> bytes:
    """The topic's id; ZERO where it was not written, or not all of it. Raises BrokerError for a newer format."""
    path = os.path.join(directory, PARTITION_METADATA)
    try:
        text = disk.read_file(path).decode()
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return ZERO
    except UnicodeDecodeError:
        log.warning("partition_metadata.damaged", path=path)
        return ZERO
    if _is_torn(text):
        return ZERO
    fields = dict(line.split(": ", 1) for line in text.splitlines() if ": " in line)
    version = fields.get("version", "")
    if version.isdigit() and int(version) > VERSION:
        raise _unusable(path, f"version {version} is not the version {VERSION} that this broker reads")
    if version != str(VERSION):
        log.warning("partition_metadata.damaged", path=path, text=text[:80])
        return ZERO
    try:
        return from_text(fields["topic_id"])
    except (KeyError, ValueError):
        log.warning("partition_metadata.damaged", path=path, text=text[:80])
        return ZERO


def _is_torn(text: str) -> bool:
    """Power was lost before all of the file was written out."""
    written = text.strip("\0")
    return HEAD.startswith(written.strip()) or (
        written.startswith(HEAD) and len(written) < len(HEAD) + UUID_LENGTH and not written.endswith("\n")
    )


def write(disk: Disk, directory: str, topic_id: bytes) -> None:
    """Not synced: `Log.secure` does that, for many new logs at once."""
    assert topic_id != ZERO, f"{directory} would be a log of no topic"
    text = f"{HEAD}{to_text(topic_id)}\n"
    disk.write_file(os.path.join(directory, PARTITION_METADATA), text.encode(), durable=False)


def mark_removed(disk: Disk, directory: str) -> None:
    """Say that this log is being removed, where a crash in between must not give half of it back. Needs no room."""
    path = os.path.join(directory, PARTITION_METADATA)
    if not disk.exists(path):
        return
    file = disk.open(path)
    try:
        file.truncate(len(REMOVED))
        file.sync()
    finally:
        file.close()


def is_removed(disk: Disk, directory: str) -> bool:
    """Whether a removal of this log was begun."""
    try:
        return disk.read_file(os.path.join(directory, PARTITION_METADATA)) == REMOVED.encode()
    except (FileNotFoundError, IsADirectoryError):
        return False


def _unusable(path: str, reason: str) -> BrokerError:
    return BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, f"{path}: {reason}")
