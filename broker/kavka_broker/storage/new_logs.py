"""Making a log: in a place that is empty on the disk, not only as far as anybody knows, and wholly or not at all."""

import os
from contextlib import suppress
from errno import ENOSPC

from kavka_broker.core.config.topic import LogConfig
from kavka_broker.storage import partition_metadata, recovery
from kavka_broker.storage.disk import Disk
from kavka_broker.storage.file_names import STRAY_DIRECTORY, PartitionName
from kavka_broker.storage.log import Log
from kavka_broker.storage.log_directory import LogDirectory
from kavka_broker.storage.log_removal import has_records, remove_log, unknown_files
from kavka_broker.storage.retired_logs import SetAside


def clear(disk: Disk, aside: SetAside, directory: LogDirectory, name: PartitionName) -> None:
    """Take away what has the name of a log and is none in service: an unknown log, a file, a link. Raises OSError."""
    path = os.path.join(directory.path, str(name))
    try:
        is_half_made = is_unused(disk, path)
    except FileNotFoundError:
        return
    except (NotADirectoryError, PermissionError):
        is_half_made = False
    if is_half_made and remove_log(disk, path):
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
            remove_log(disk, path)
        raise


def is_unused(disk: Disk, path: str) -> bool:
    """Whether `path` is a log that never held a record, and nothing else: at most its first segment was begun. Raises
    OSError.
    """
    return disk.link_target(path) is None and not unknown_files(disk, path) and not has_records(disk, path)


def in_the_way() -> OSError:
    return OSError(ENOSPC, "a log that could not be set aside has its place")
