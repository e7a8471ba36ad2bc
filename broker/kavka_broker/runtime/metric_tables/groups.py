"""Consumer groups that a broker coordinates."""

from typing import Final

from kavka_broker.runtime.metric_tables.family import LAG, Kind, Row

GROUPS: Final[tuple[Row, ...]] = (
    (
        "kavka_group_lag_records",
        Kind.GAUGE,
        LAG,
        "Records of a topic between a group's committed offsets and the ends for this isolation level.",
    ),
    (
        "kavka_group_lag_seconds",
        Kind.GAUGE,
        LAG,
        "Age of the oldest record of a topic that a group has not read; 0 where it is at the ends.",
    ),
    ("kavka_group_lag_age_seconds", Kind.GAUGE, (), "Time since the lag of the groups here was measured."),
)
