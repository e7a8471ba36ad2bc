"""Files that are not what they were: bits turned over, zeros, an end that is missing, another's content, no file.

All of it happens while the node is down, to one node at a time, and only to what the cluster holds elsewhere too: the
replicas of partitions, what stands beside them in a log directory, and a voter's metadata. What makes a node refuse its
start is left alone, for somebody has to come then: `meta.properties`, both files of the vote at once, and a snapshot
that the metadata log begins behind.
"""

import random
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from kavka_broker.controller.quorum_state_file import COPY, SYNCED
from kavka_broker.controller.snapshot_files import BOOTSTRAP, parse_id
from kavka_broker.core.raft.quorum_state import FILE_NAME as QUORUM_STATE

SECTOR_BYTES: Final = 512
METADATA_LOG: Final = "__cluster_metadata-0"
IN_METADATA: Final = (
    "*.log", "*.log", "*.index", "*.timeindex", "*.snapshot", "*.checkpoint", QUORUM_STATE, COPY, SYNCED,
    "leader-epoch-checkpoint", "partition.metadata",
)  # fmt: skip
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
    """Damage one file of the replicas; says which and how. The node must be down."""
    for _ in range(100):
        candidates = files(chance.choice(list(directories)), chance.choice((*IN_A_LOG, *IN_A_DIRECTORY)))
        if candidates:
            return harmed(candidates, chance)
    return "no file to damage"


def strike_metadata(directory: Path, chance: random.Random) -> str:
    """Damage one file of a controller's metadata; says which and how. The node must be down, and all others well."""
    for _ in range(100):
        candidates = metadata_files(directory, chance.choice(IN_METADATA))
        if candidates:
            return harmed(candidates, chance)
    return "no file to damage"


def harmed(candidates: Sequence[Path], chance: random.Random) -> str:
    file, harm = chance.choice(candidates), chance.choice(HARMS)
    if file.name == SYNCED and harm is flip:
        harm = remove  # a larger number may be true: the voter would abstain until its log is as long
    return f"{file.parent.name}/{file.name} {harm(file, candidates, chance)}"


def files(directory: Path, pattern: str) -> list[Path]:
    """Segments with records; of every log except the metadata's and those that are set aside."""
    logs = (
        path for path in directory.iterdir() if path.is_dir() and path.name != METADATA_LOG and "." not in path.name
    )
    places = [directory] if pattern in IN_A_DIRECTORY else sorted(logs)
    found = [path for place in places for path in sorted(place.glob(pattern))]
    return [path for path in found if path.stat().st_size > 0]


def metadata_files(directory: Path, pattern: str) -> list[Path]:
    """Those of a voter's metadata with something in them. Not the last snapshot that stands for what is no more in the
    log: a node refuses to start without it.
    """
    found = sorted(path for path in directory.glob(pattern) if path.stat().st_size > 0)
    return [path for path in found if path.name == BOOTSTRAP or parse_id(path.name) is None or is_spare(path)]


def is_spare(snapshot: Path) -> bool:
    """Whether the metadata log, or an older snapshot and the log behind it, still has what a snapshot stands for."""
    ids = sorted(one for one in (parse_id(path.name) for path in snapshot.parent.iterdir()) if one is not None)
    begins = min((int(path.stem) for path in snapshot.parent.glob("*.log")), default=0)
    older = [one for one in ids if one < ids[-1] and one.end_offset >= begins]
    return parse_id(snapshot.name) == ids[-1] and (begins == 0 or bool(older))


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
    if len(others) == 1:
        return truncate(file, others, chance)  # there is nothing to exchange it for
    other = chance.choice([one for one in others if one != file])
    shutil.copyfile(other, file.with_suffix(".swapped"))
    file.with_suffix(".swapped").replace(file)
    return f"has the content of {other.parent.name}/{other.name}"


def remove(file: Path, others: Sequence[Path], chance: random.Random) -> str:
    file.unlink()
    return "is gone"


HARMS: Final[tuple[Callable[[Path, Sequence[Path], random.Random], str], ...]] = (
    flip, flip, zero, truncate, swap, remove,
)  # fmt: skip
