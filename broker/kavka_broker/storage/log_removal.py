"""Removes the files of a log, and nothing else.

A log directory is a directory of the file system: users keep backups beside the logs, put notes into them, and replace
them by symbolic links. So a log is removed by the names that Kavka and Apache Kafka give their files. Anything else
that lies there stays, and with it the directory. A symbolic link is removed alone; where it leads to stays as it is.
"""

import os
from errno import EEXIST, ENOTEMPTY

from kavka_broker.logs import get
from kavka_broker.storage.disk import Disk
from kavka_broker.storage.file_names import LOG, OFFSET_DIGITS, SWAP, is_partition_file

log = get("storage")


def unknown_files(disk: Disk, path: str) -> list[str]:
    """Return what lies in the directory of a log and is no file of a log. Raises OSError."""
    return [
        entry
        for entry in disk.names(path)
        if not is_partition_file(entry) or disk.is_directory(os.path.join(path, entry))
    ]


def has_records(disk: Disk, path: str) -> bool:
    """Whether the log in `path` may hold records: a segment has bytes, or is not the first. Raises OSError."""
    for entry in disk.names(path):
        if entry[OFFSET_DIGITS:] not in (LOG, LOG + SWAP) or not is_partition_file(entry):
            continue
        file = os.path.join(path, entry)
        if (int(entry[:OFFSET_DIGITS]) or disk.size(file)) and not disk.is_directory(file):
            return True
    return False


def remove_log(disk: Disk, path: str) -> bool:
    """Remove the files of a log and its directory. Returns whether the directory is gone: it stays where unknown files
    lie in it. Raises OSError.
    """
    target = disk.link_target(path)
    if target is not None:
        log.warning("link.removed", path=path, kept=target)
        disk.remove(path)
        return True
    return remove_files(disk, path, disk.names(path)) and _try_remove_directory(disk, path)


def remove_files(disk: Disk, path: str, entries: list[str]) -> bool:
    """Remove those of the entries that are files of a log; returns whether all of them were. Raises OSError."""
    assert disk.link_target(path) is None, f"{path} leads elsewhere"
    are_all = True
    for entry in entries:
        if not is_partition_file(entry):
            are_all = False
            continue
        try:
            disk.remove(os.path.join(path, entry))
        except (IsADirectoryError, PermissionError):
            if not disk.is_directory(os.path.join(path, entry)):  # POSIX lets a system say EPERM of a directory
                raise
            are_all = False
    return are_all


def _try_remove_directory(disk: Disk, path: str) -> bool:
    assert disk.link_target(path) is None, f"{path} leads elsewhere"
    try:
        disk.remove_directory(path)
    except OSError as problem:
        if problem.errno in (ENOTEMPTY, EEXIST):  # something came into it meanwhile
            return False
        raise
    return True
