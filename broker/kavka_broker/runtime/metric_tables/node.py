"""The process and its loop: what runs here, and what it takes of the machine."""

from typing import Final

from kavka_broker.runtime.metric_tables.family import CLIENT, Kind, Row

NODE: Final[tuple[Row, ...]] = (
    ("kavka_build_info", Kind.GAUGE, ("version", "python"), "Always 1; the labels say what is running."),
    ("kavka_broker_info", Kind.GAUGE, ("node_id", "cluster_id"), "Always 1; the labels say who this is."),
    ("kavka_broker_ready", Kind.GAUGE, (), "1 when the broker serves clients; see /readyz for what is missing."),
    (
        "kavka_assertions_failed_total",
        Kind.COUNTER,
        (),
        "Assertions that failed on this node, each of which ended a process; reports are in failed-assertions.",
    ),
    (
        "kavka_memory_anonymous_bytes",
        Kind.GAUGE,
        (),
        "Memory of the process without mapped log files, which process_resident_memory_bytes counts too.",
    ),
    ("kavka_loop_held_total", Kind.COUNTER, ("callback",), "Callbacks that held the loop for more than 10 ms."),
    ("kavka_loop_held_seconds_total", Kind.COUNTER, ("callback",), "Time for which these held the loop."),
    ("kavka_client_waited_seconds_total", Kind.COUNTER, CLIENT, "Time a client's connections waited for others."),
    (
        "kavka_loop_cpu_seconds_total",
        Kind.COUNTER,
        (),
        "CPU time of the loop's thread. One second a second is all that there is.",
    ),
    (
        "kavka_loop_idle_ratio",
        Kind.GAUGE,
        (),
        "Share of the last half minute, or since an earlier scrape, in which the loop's thread did nothing.",
    ),
    ("kavka_disk_read_bytes_total", Kind.COUNTER, (), "Bytes that the process had the disks read."),
    ("kavka_disk_written_bytes_total", Kind.COUNTER, (), "Bytes that the process had the disks write."),
    (
        "kavka_series_omitted",
        Kind.GAUGE,
        ("family",),
        "Series beyond the bound of a family, which are not shown.",
    ),
)
