"""A metric of the table, its kind, and the labels that several of them share."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Kind(StrEnum):
    """Prometheus' types of metrics."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"
    UNTYPED = "unknown"


@dataclass(frozen=True, slots=True)
class Family:
    """A metric with all its series."""

    name: str
    kind: Kind
    labels: tuple[str, ...]
    help: str


Row = tuple[str, Kind, tuple[str, ...], str]
"""The fields of a `Family`."""

CLIENT: Final = ("user", "client_id")
QUOTA: Final = (*CLIENT, "quota_type")
SAID: Final = ("client_id", "client_software", "metric")
PARTITION: Final = ("topic", "partition")
LAG: Final = ("group", "topic", "isolation_level")
ENTITY: Final = ("entity", "quota_type")
