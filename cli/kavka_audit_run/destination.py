"""Where the files of `kavka audit run` go: a directory, or an S3 store with a directory that mirrors it."""

import hashlib
import json
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, Protocol

from kavka_audit.lake.directory import Lake
from kavka_audit.lake.own_files import CLAIM

if TYPE_CHECKING:
    from kavka_audit.store.address import Address
    from kavka_audit.store.s3 import S3

UNSAID: Final = "parquet"
"""The format where nothing is said of it."""
Addressing = Literal["auto", "path", "virtual"]


class Chosen(Protocol):
    """The options that say where the files go."""

    @property
    def directory(self) -> Path | str:
        """A path, or the address of an S3 store."""

    @property
    def table_format(self) -> str: ...
    @property
    def cluster_id(self) -> str: ...
    @property
    def s3_endpoint(self) -> str | None: ...
    @property
    def s3_region(self) -> str | None: ...
    @property
    def s3_addressing(self) -> Addressing: ...
    @property
    def work_directory(self) -> Path | None: ...


def store_of(chosen: Chosen) -> "tuple[Address, S3] | None":
    """Return the store in which the files are kept, and where it is; None for a directory alone. The library for S3
    stores is loaded for one alone. Raises LakeError.
    """
    if isinstance(chosen.directory, Path):
        return None
    from kavka_audit.store.address import address_of
    from kavka_audit.store.s3 import S3

    address = address_of(
        chosen.directory, os.environ, chosen.s3_endpoint, chosen.s3_region, addressing=chosen.s3_addressing
    )
    return address, S3(address)


def lake_of(chosen: Chosen, progress: Callable[[str], None]) -> Lake:
    """Return the lake. Raises LakeError."""
    lake = _lake_of(chosen, progress)
    lake.wanted_cluster = chosen.cluster_id
    return lake


def _lake_of(chosen: Chosen, progress: Callable[[str], None]) -> Lake:
    kept = store_of(chosen)
    if kept is None:
        assert isinstance(chosen.directory, Path)
        return Lake(chosen.directory, table_format=chosen.table_format)
    from kavka_audit.store import lease
    from kavka_audit.store.mirror import Mirror

    (address, store), name = kept, str(kept[0])
    directory = chosen.work_directory or cached(address.endpoint, name)
    held = lease.Lease(store, name, socket.gethostname(), lease.LEASE_SECONDS)
    mirror = Mirror(store, name, held, progress, has_own_directory=chosen.work_directory is None)
    return Lake(directory, mirror, chosen.table_format)


def format_in(chosen: Chosen) -> str:
    """Return the format of the tables that are there; empty where no run has written. Raises LakeError."""
    if isinstance(chosen.directory, Path):
        return Lake(chosen.directory).claim()[1] if os.path.exists(chosen.directory / CLAIM) else ""
    kept = store_of(chosen)
    assert kept is not None, "an address is that of a store"
    found = kept[1].read(CLAIM)
    try:
        return "" if found is None else str(json.loads(found[0]).get("table_format", UNSAID))
    except (ValueError, AttributeError):
        return ""  # a run that holds the place says that no run has written it


def cached(endpoint: str, name: str) -> Path:
    """Return the directory of the user's cache that mirrors a store."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    own = hashlib.sha256(f"{endpoint} {name}".encode()).hexdigest()[:12]
    return home / "kavka" / "audit" / f"{name.removeprefix('s3://').replace('/', '-')[:60]}-{own}"
