"""The files of a segment that a cleaning has written, on their way into the place of those that it was made of.

    1. `.cleaned`: being written, then synced
    2. renamed to `.swap`, the log last: from here on it counts
    3. the files of the old segments are renamed to `.deleted`, those of the first segment first
    4. the `.swap` files get their names, the log last

Steps 2 to 4 are one step of the loop (`put_in_place`), and the names of a directory reach the disk in the order of
their changes. So a start that finds a `.log.swap` finishes what was begun (`finish`), as Kafka does with its own, and
every other start finds either the old segments or the new one.
"""

import os
from contextlib import suppress

from kavka_broker.logs import get
from kavka_broker.protocol.errors import ProtocolViolation
from kavka_broker.storage.batch_walk import end_at
from kavka_broker.storage.disk import UNFINISHED_SUFFIXES, Disk
from kavka_broker.storage.file_names import (
    CLEANED,
    LOG,
    OFFSET_DIGITS,
    SEGMENT_FILES,
    SWAP,
    is_swap,
    offset_file,
    parse_offset_file,
)
from kavka_broker.storage.log import Log
from kavka_broker.storage.segment import Segment

log = get("storage")

#: While a segment is being written a start removes it; once it counts, a start finishes what was begun.
assert CLEANED in UNFINISHED_SUFFIXES, "a start keeps what was not written to its end"
assert SWAP not in UNFINISHED_SUFFIXES, "a start removes what counts already"


def discard_unfinished(disk: Disk, directory: str, base_offset: int) -> None:
    """Remove the cleaned files of a segment that did not come into its place."""
    for suffix in SEGMENT_FILES:
        with suppress(OSError):
            disk.remove(os.path.join(directory, offset_file(base_offset, suffix + CLEANED)))


def rename_all(disk: Disk, directory: str, base_offset: int, source: str, target: str) -> None:
    """Rename the files of a segment from one suffix to another, the log last. Raises OSError."""
    assert (source, target) in ((CLEANED, SWAP), (SWAP, "")), f"{directory}: {source} does not become {target}"
    for suffix in reversed(SEGMENT_FILES):
        path = os.path.join(directory, offset_file(base_offset, suffix))
        if disk.exists(path + source):
            disk.rename(path + source, path + target)


def put_in_place(log_: Log, old: list[Segment], cleaned: Segment) -> bool:
    """Put the cleaned segment in the place of `old`; returns whether these are still there. Its files are
    synced, their names are not yet. Raises KAFKA_STORAGE_ERROR; then the next start finishes it.
    """
    state, segments, there = log_.state, log_.segments, log_.segments.all
    assert old, f"{state.name}: a cleaning replaces nothing"
    first = there.index(old[0]) if old[0] in there else -1
    behind = first + len(old)
    if first < 0 or there[first:behind] != old or behind >= len(there):
        return False
    base_offset = cleaned.base_offset
    assert base_offset == old[0].base_offset, f"{state.name}: {base_offset} takes the place of {old[0].base_offset}"
    try:
        rename_all(log_.disk, log_.directory, base_offset, CLEANED, SWAP)
        state.note_changed()
        segments.discard(old, keeps_snapshot=base_offset)
        rename_all(log_.disk, log_.directory, base_offset, SWAP, "")
        made = segments.make(base_offset, cleaned.created_ms)
    except OSError as problem:
        state.fail()
        raise state.storage_error("replace", problem) from problem
    assert (made.base_offset, made.size_bytes) == (cleaned.base_offset, cleaned.size_bytes)
    made.take_over(cleaned)
    segments.replace([*there[:first], made, *there[behind:]])
    assert segments.active is there[-1], f"{state.name}: the active segment was cleaned"
    segments.look_at_indexes()
    return True


def finish(disk: Disk, directory: str) -> None:
    """Finish the replacements that a crash has interrupted. Raises OSError.

    Indexes are removed, for those of the old segment and of the new one may be mixed; a start rebuilds them.
    """
    names = disk.names(directory)
    swaps = _bases(names, LOG + SWAP)
    # Kafka renames several logs of one replacement. While one log is still to come, none of them counts.
    unfinished = min(_bases(names, *(suffix + CLEANED for suffix in SEGMENT_FILES)), default=None)
    for base_offset in swaps:
        path = os.path.join(directory, offset_file(base_offset, LOG))
        if unfinished is not None and base_offset >= unfinished:
            disk.remove(path + SWAP)
            continue
        end_offset = _end(disk, path + SWAP, base_offset)
        if end_offset is None and disk.exists(path):
            log.warning("segment_swap.ignored", path=path + SWAP)
            disk.remove(path + SWAP)
            continue
        _finish(disk, directory, base_offset, end_offset or base_offset)
    for name in disk.names(directory):
        if is_swap(name):
            disk.remove(os.path.join(directory, name))
    if swaps:
        disk.sync_directory(directory)


def _finish(disk: Disk, directory: str, base_offset: int, end_offset: int) -> None:
    assert base_offset <= end_offset, f"{directory}: {base_offset} ends at {end_offset}"
    path = os.path.join(directory, offset_file(base_offset, LOG))
    log.info("segment.swapped", path=path, end_offset=end_offset)
    for other in _bases(disk.names(directory), *SEGMENT_FILES):
        if base_offset < other < end_offset:
            _remove(disk, directory, other, *reversed(SEGMENT_FILES))
    _remove(disk, directory, base_offset, *(suffix for suffix in SEGMENT_FILES if suffix != LOG))
    disk.rename(path + SWAP, path)


def _remove(disk: Disk, directory: str, base_offset: int, *suffixes: str) -> None:
    assert LOG not in suffixes[:-1], f"{suffixes}: an index without its log would count as lost by the disk"
    for suffix in suffixes:
        path = os.path.join(directory, offset_file(base_offset, suffix))
        if disk.exists(path):
            disk.remove(path)


def _end(disk: Disk, path: str, base_offset: int) -> int | None:
    """Return where the batches of this file end; None where a batch is damaged."""
    file = disk.open_to_read(path)
    try:
        return end_at(file, 0, file.size, base_offset)
    except ProtocolViolation:
        return None
    finally:
        file.close()


def _bases(names: list[str], *suffixes: str) -> list[int]:
    """Return the first offsets of the segments that have a file of such a suffix, ascending."""
    parsed = (parse_offset_file(name.removesuffix(SWAP).removesuffix(CLEANED)) for name in names)
    pairs = zip(names, parsed, strict=True)
    return sorted({found[0] for name, found in pairs if found is not None and name[OFFSET_DIGITS:] in suffixes})
