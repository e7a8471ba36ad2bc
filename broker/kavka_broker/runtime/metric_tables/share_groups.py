"""Share groups (KIP-932): the share partitions that a broker leads, and the states that it coordinates."""

from typing import Final

from kavka_broker.runtime.metric_tables.family import Kind, Row

SHARE_GROUPS: Final[tuple[Row, ...]] = (
    ("kavka_share_sessions", Kind.GAUGE, (), "Members of share groups that fetch from this broker."),
    ("kavka_share_partitions", Kind.GAUGE, (), "Share partitions that this broker serves to members."),
    (
        "kavka_share_records_in_flight",
        Kind.GAUGE,
        (),
        "Offsets between the start of a group and the last record it was given, over all share partitions.",
    ),
    (
        "kavka_share_records_total",
        Kind.COUNTER,
        ("event",),
        "Records of share groups: acquired, redelivered, accepted, released, archived, and expired (by their locks).",
    ),
    (
        "kavka_share_group_waiting_records",
        Kind.GAUGE,
        ("group", "topic"),
        "Offsets from the start of a group to the high watermark, over the share partitions that this broker serves.",
    ),
    (
        "kavka_share_group_oldest_record_seconds",
        Kind.GAUGE,
        ("group", "topic"),
        "Age of the oldest record that a group is not done with, in partitions that this broker serves; 0 without one.",
    ),
    (
        "kavka_share_group_records_total",
        Kind.COUNTER,
        ("group", "topic", "event"),
        "Records that a group was given again (redelivered), or gets no more though nobody accepted them (archived).",
    ),
    (
        "kavka_share_states",
        Kind.GAUGE,
        (),
        "Share partitions whose state this broker coordinates in __share_group_state.",
    ),
)
