"""A loss of power of a machine whose disk is not its own: the part of its logs that was not synced is cut off.

Where a node has a real file system to itself, `disks.Disk.lose_power` does it for all files, as the kernel does. Here a
killed process and this file together look like it: `lose_unsynced` cuts from each log a part of what the broker has not
reported as synced in its recovery checkpoint. The metadata log is left alone: what is in it was synced before anybody
was told.
"""

import os
import random
from pathlib import Path
from typing import Final

from kavka_broker.protocol.records.batch import HEADER_BYTES, read_extent

CHECKPOINT: Final = "recovery-point-offset-checkpoint"
METADATA_LOG: Final = "__cluster_metadata-0"


def lose_unsynced(data: Path, chance: random.Random) -> int:
    """Cut from every log what a loss of power may take; the bytes that are gone. The broker must be dead."""
    synced = recovery_points(data)
    lost = 0
    for directory in sorted(data.iterdir()):
        if directory.is_dir() and directory.name != METADATA_LOG and "." not in directory.name:
            lost += cut_log(directory, synced.get(directory.name, 0), chance)
    return lost


def recovery_points(data: Path) -> dict[str, int]:
    """Log -> the offset below which everything was synced. The file: version, count, then a line a log."""
    path = data / CHECKPOINT
    lines = path.read_text().splitlines()[2:] if path.exists() else []
    return {f"{topic}-{partition}": int(offset) for topic, partition, offset in (line.split() for line in lines)}


def cut_log(directory: Path, recovery_point: int, chance: random.Random) -> int:
    """Cut one log somewhere behind its recovery point, in mid batch if chance wants it so."""
    lost = 0
    is_cut = False
    for segment in sorted(directory.glob("*.log")):
        kept = 0 if is_cut else position_of(segment, recovery_point)
        size = segment.stat().st_size
        if kept >= size:
            continue
        if not is_cut:
            kept = chance.randint(kept, size)
        is_cut = is_cut or kept < size
        if kept < size:
            os.truncate(segment, kept)
            lost += size - kept
            for index in (".index", ".timeindex"):
                segment.with_suffix(index).unlink(missing_ok=True)
    return lost


def position_of(segment: Path, offset: int) -> int:
    """Where the first batch that holds `offset` or a later one begins."""
    content = memoryview(segment.read_bytes())
    position = 0
    while len(content) - position >= HEADER_BYTES:
        _base_offset, last_offset, size_bytes = read_extent(content, position)
        if last_offset >= offset:
            break
        position += size_bytes
    return min(position, len(content))
