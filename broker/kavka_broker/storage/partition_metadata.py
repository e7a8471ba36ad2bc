"""The file `partition.metadata`: which topic a log belongs to.

By id, so that another topic of the same name is not mistaken for it.

version: 0
topic_id: 8pQhXzKfQ0mZJ6m3oY3c1A
"""

import os

from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.uuids import ZERO, from_text, to_text
from kavka_broker.storage.disk import Disk
from kavka_broker.storage.names import PARTITION_METADATA

VERSION = 0
HEAD = f"version: {VERSION}\ntopic_id: "
UUID_LENGTH = 22


def read(disk: Disk, directory: str) -> bytes:
    """The topic's id, or ZERO where there is no file. Raises BrokerError for one of a newer format."""
    path = os.path.join(directory, PARTITION_METADATA)
    try:
        text = disk.read_file(path).decode()
    except FileNotFoundError:
        return ZERO
    except UnicodeDecodeError as problem:
        raise _unusable(path, str(problem)) from None
    if _is_torn(text):
        return ZERO
    fields = dict(line.split(": ", 1) for line in text.splitlines() if ": " in line)
    if fields.get("version") != str(VERSION):
        raise _unusable(path, f"version {fields.get('version')} is not the version {VERSION} that this broker reads")
    try:
        return from_text(fields["topic_id"])
    except (KeyError, ValueError) as problem:
        raise _unusable(path, f"no topic id: {problem}") from None


def _is_torn(text: str) -> bool:
    """Power was lost before all of the file was written out; the metadata log knows the id."""
    written = text.strip("\0")
    return HEAD.startswith(written.strip()) or (
        written.startswith(HEAD) and len(written) < len(HEAD) + UUID_LENGTH and not written.endswith("\n")
    )


def write(disk: Disk, directory: str, topic_id: bytes) -> None:
    """Not synced: the log's first flush does that for the directory, and a lost id is found in the metadata log."""
    text = f"{HEAD}{to_text(topic_id)}\n"
    disk.write_file(os.path.join(directory, PARTITION_METADATA), text.encode(), durable=False)


def _unusable(path: str, reason: str) -> BrokerError:
    return BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, f"{path}: {reason}")
