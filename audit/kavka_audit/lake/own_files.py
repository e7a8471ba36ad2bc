"""Which files of a lake's directory are its own, by their names, and whether such a file is whole.

A directory may hold files of other programs: half a file of another writer of Parquet, what a desktop leaves, notes.
They are neither read nor written over nor deleted.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

PART: Final = ".part"
TABLES: Final = ("entries", "counts")
CLAIM: Final = "lake.json"
COUNTS_OF_ANSWERS: Final = "snapshot/answers.json"
"""What a run leaves for the next one to say what has changed."""
MIRROR: Final = "kavka-mirror.json"
"""Stands in a directory that is a copy of a store, of which nothing is lost with it."""
MADE: Final = ("report.html", "lineage.jsonl", "metrics.prom", "quotas.yaml", "cut.parquet")
"""What a run writes beside the tables."""
MAGIC: Final = b"PAR1"
FOOTER_BYTES: Final = 8
"""The length of a Parquet file's description of itself, and the magic behind it."""
_RANGE: Final = re.compile(r"[0-9]+-[0-9]{20}-[0-9]{20}\.parquet")
_PART_OF_RANGE: Final = re.compile(r"[0-9]+-[0-9]{20}-[0-9]{20}(?:\.parquet)?\.part(?:\.[a-z0-9_]+(?:\.lines)?\.part)?")
_PART_OF_TABLE: Final = re.compile(r"[a-z0-9_]+\.(?:parquet|json|csv)(?:\.lines)?\.part")
_STAGE: Final = re.compile(r"spark-[0-9a-f]{32}-[a-z_]+\.part")
_PARTS_OF_MADE: Final = frozenset(f"{name}{more}{PART}" for name in (CLAIM, *MADE) for more in ("", ".lines"))


def is_range(name: str) -> bool:
    """Whether the file holds records of the trail."""
    return _RANGE.fullmatch(name) is not None


def ranges(directory: Path, table: str) -> Iterator[Path]:
    """Yield the files of a table."""
    return (file for file in (directory / table).glob("*/*.parquet") if is_range(file.name))


def unfinished(directory: Path) -> list[Path]:
    """Return files and directories that a run which died has left."""
    found = [path for path in directory.glob(f"*{PART}") if path.name in _PARTS_OF_MADE or _STAGE.fullmatch(path.name)]
    for place in ("snapshot", "tables"):
        found += (path for path in (directory / place).glob(f"*{PART}") if _PART_OF_TABLE.fullmatch(path.name))
    for table in TABLES:
        found += (path for path in (directory / table).glob(f"*/*{PART}") if _PART_OF_RANGE.fullmatch(path.name))
    return found


def unknown(directory: Path) -> list[Path]:
    """Return the files among those of the trail that no run has written."""
    found = (path for table in TABLES for path in (directory / table).glob("*/*"))
    return sorted(path for path in found if not is_range(path.name) and not _PART_OF_RANGE.fullmatch(path.name))


def is_whole(file: Path) -> bool:
    """Whether a Parquet file begins and ends as one; its middle is not read. Raises OSError."""
    with file.open("rb") as opened:
        size = opened.seek(0, 2)
        if size < 2 * len(MAGIC) + FOOTER_BYTES:
            return False
        opened.seek(size - FOOTER_BYTES)
        footer = opened.read(FOOTER_BYTES)
        opened.seek(0)
        head = opened.read(len(MAGIC))
    described = int.from_bytes(footer[: -len(MAGIC)], "little")
    return head == MAGIC and footer.endswith(MAGIC) and described <= size - len(MAGIC) - FOOTER_BYTES
