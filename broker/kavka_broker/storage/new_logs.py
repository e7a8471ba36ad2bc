"""Making a log: in a place that is empty on the disk, not only as far as anybody knows, and wholly or not at all."""

import os
from contextlib import suppress
from errno import ENOSPC

from kavka_broker.core.config.topic import LogConfig
from kavka_broker.storage import partition_metadata, recovery
from kavka_broker.storage.disk import Disk
from kavka_broker.storage.log import Log
from kavka_broker.storage.log_directory import LogDirectory
from kavka_broker.storage.names import LOG, STRAY_DIRECTORY, PartitionName, parse_offset_file
from kavka_broker.storage.set_aside import SetAside


def clear(disk: Disk, aside: SetAside, directory: LogDirectory, name: PartitionName) -> None:
    """Take away an unknown log that has the name: whose it is cannot be told any more. Raises OSError."""
    path = os.path.join(directory.path, str(name))
    try:
        is_half_made = is_unused(disk, path)
    except FileNotFoundError:
        return
    if is_half_made:
        disk.remove_tree(path)
        return
    aside.put(directory, name, path, STRAY_DIRECTORY)
    if aside.holds(path):
        raise in_the_way()


def begin(disk: Disk, path: str, topic_id: bytes, config: LogConfig, now_ms: int) -> Log:
    """An empty log of this topic. Raises OSError, and then leaves nothing behind."""
    try:
        disk.make_directory(path)
        partition_metadata.write(disk, path, topic_id)
        made = recovery.open_log(disk, path, config, recover=False, now_ms=now_ms, topic_id=topic_id)
        assert made.log_end_offset == 0, f"{path} was in the place of a new log, up to {made.log_end_offset}"
        made.segments.release()  # there may be very many logs without a record
        return made
    except OSError:
        with suppress(OSError):
            disk.remove_tree(path)
        raise


def is_unused(disk: Disk, path: str) -> bool:
    """Whether the log in `path` never held a record: at most its first segment was begun."""
    for entry in disk.names(path):
        parsed = parse_offset_file(entry)
        if parsed is None or parsed[1] != LOG:
            continue
        if parsed[0] or disk.size(os.path.join(path, entry)):
            return False
    return True


def in_the_way() -> OSError:
    return OSError(ENOSPC, "a log that could not be set aside has its place")
