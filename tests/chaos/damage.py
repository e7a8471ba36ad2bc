"""Files that are not what they were: bits turned over, zeros, an end that is missing, another's content, no file.

All of it happens while the node is down, to one node at a time, and only to what the cluster holds elsewhere too: the
replicas of partitions, and what stands beside them in a log directory. The metadata log, its quorum state and
`meta.properties` are left alone: of those a node refuses what it cannot trust, and somebody has to replace it.
"""

import random
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

SECTOR_BYTES: Final = 512
METADATA_LOG: Final = "__cluster_metadata-0"
IN_A_LOG: Final = (
    "*.log", "*.log", "*.log", "*.index", "*.timeindex", "*.snapshot", "leader-epoch-checkpoint", "partition.metadata",
)  # fmt: skip
IN_A_DIRECTORY: Final = (
    "recovery-point-offset-checkpoint",
    "replication-offset-checkpoint",
    "log-start-offset-checkpoint",
    ".kafka_cleanshutdown",
)


def strike(directories: Sequence[Path], chance: random.Random) -> str:
    """Damage one file; says which and how. The node must be down."""
    for _ in range(100):
        candidates = files(chance.choice(list(directories)), chance.choice((*IN_A_LOG, *IN_A_DIRECTORY)))
        if candidates:
            break
    else:
        return "no file to damage"
    file = chance.choice(candidates)
    harm = chance.choice(HARMS)
    what = harm(file, candidates, chance)
    return f"{file.parent.name}/{file.name} {what}"


def files(directory: Path, pattern: str) -> list[Path]:
    """Those with something in them; of logs, everybody's but the metadata's and what is set aside."""
    logs = (
        path for path in directory.iterdir() if path.is_dir() and path.name != METADATA_LOG and "." not in path.name
    )
    places = [directory] if pattern in IN_A_DIRECTORY else sorted(logs)
    found = [path for place in places for path in sorted(place.glob(pattern))]
    return [path for path in found if path.stat().st_size > 0]


def flip(file: Path, others: Sequence[Path], chance: random.Random) -> str:
    content = bytearray(file.read_bytes())
    position = chance.randrange(len(content))
    content[position] ^= 1 << chance.randrange(8)
    file.write_bytes(content)
    return f"has a bit turned over at {position:,} of {len(content):,}"


def zero(file: Path, others: Sequence[Path], chance: random.Random) -> str:
    content = bytearray(file.read_bytes())
    start = chance.randrange(0, len(content), SECTOR_BYTES)
    size = len(content[start : start + SECTOR_BYTES])
    content[start : start + size] = bytes(size)
    file.write_bytes(content)
    return f"has a sector of zeros at {start:,} of {len(content):,}"


def truncate(file: Path, others: Sequence[Path], chance: random.Random) -> str:
    content = file.read_bytes()
    kept = chance.randrange(len(content))
    file.write_bytes(content[:kept])
    return f"has {kept:,} bytes left of {len(content):,}"


def swap(file: Path, others: Sequence[Path], chance: random.Random) -> str:
    other = chance.choice([one for one in others if one != file] or [file])
    shutil.copyfile(other, file.with_suffix(".swapped"))
    file.with_suffix(".swapped").replace(file)
    return f"has the content of {other.parent.name}/{other.name}"


def remove(file: Path, others: Sequence[Path], chance: random.Random) -> str:
    file.unlink()
    return "is gone"


HARMS: Final[tuple[Callable[[Path, Sequence[Path], random.Random], str], ...]] = (
    flip, flip, zero, truncate, swap, remove,
)  # fmt: skip
