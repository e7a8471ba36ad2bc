"""The cluster as it is now, beside the trail: what has not been used is found only where it is known to be there."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kavka_audit.lake.columns import SNAPSHOT
from kavka_audit.lake.directory import Lake
from kavka_audit.lake.writing import write

Rows = Sequence[Mapping[str, object]]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A cluster at one moment. `tables` are rows by the names of `SNAPSHOT`; `untold` is what it did not tell, with the
    reason. `name` is what people call the cluster, `address` where it is, HOST:PORT.
    """

    cluster_id: str
    tables: Mapping[str, Rows]
    untold: Sequence[str] = field(default_factory=tuple)
    name: str = ""
    address: str = ""


def keep(lake: Lake, snapshot: Snapshot) -> None:
    """Put the snapshot in the place of the one before."""
    assert snapshot.tables.keys() <= SNAPSHOT.keys(), snapshot.tables.keys()
    for name, columns in SNAPSHOT.items():
        write(lake, lake.snapshot / f"{name}.parquet", snapshot.tables.get(name, ()), columns)
