"""The files that a start finds in the directory of one log, and those of them that a crash has left half done."""

import os

from kavka_broker.storage.cleaning.segment_swap import finish
from kavka_broker.storage.disk import UNFINISHED_SUFFIXES, Disk
from kavka_broker.storage.file_names import (
    FOREIGN,
    LOG,
    SEGMENT_FILES,
    is_log_file,
    is_swap,
    offset_file,
    parse_future,
    parse_offset_file,
    parse_partition,
)


def clean_up(disk: Disk, directory: str) -> list[str]:
    """Remove files that a crash left half done; returns the other names."""
    try:
        names = disk.names(directory)
    except FileNotFoundError:
        disk.make_directory(directory)
        return []
    if any(map(is_swap, names)):
        finish(disk, directory)
        names = disk.names(directory)
        assert not any(map(is_swap, names)), f"{directory}: a replacement is not finished: {names}"
    unfinished = [name for name in names if name.endswith(UNFINISHED_SUFFIXES) and is_log_file(name)]
    for name in unfinished:
        disk.remove(os.path.join(directory, name))
    return [name for name in names if name not in unfinished] if unfinished else names


def offset_files(names: list[str]) -> list[tuple[int, str]]:
    """Return the files of segments and the snapshots, by offset."""
    return [found for found in map(parse_offset_file, names) if found is not None]


def drop_lone(disk: Disk, directory: str, files: list[tuple[int, str]]) -> tuple[list[int], list[int]]:
    """Remove the indexes of segments whose log is gone; returns the first offsets of the segments, and of those."""
    bases = sorted(offset for offset, suffix in files if suffix == LOG)
    assert len(set(bases)) == len(bases), f"{directory}: a segment is there twice: {bases}"
    gone = [(offset, suffix) for offset, suffix in files if suffix in SEGMENT_FILES and offset not in bases]
    for offset, suffix in gone:
        disk.remove(os.path.join(directory, offset_file(offset, suffix)))
    return bases, sorted({offset for offset, _ in gone})


def has_foreign(names: list[str]) -> bool:
    """Whether a former start has found that the log is another partition's."""
    return FOREIGN in names


def note_foreign(disk: Disk, directory: str, *, is_foreign: bool) -> None:
    """Write down that the log is another partition's, or no more. Raises OSError.

    Only a start behind a clean stop can tell: without the note the next one, behind a crash, would believe the log.
    """
    base, path = os.path.basename(directory), os.path.join(directory, FOREIGN)
    assert parse_partition(base) or parse_future(base), f"{directory} is no log's"
    if is_foreign:
        disk.write_file(path, b"")
    else:
        disk.remove(path)
