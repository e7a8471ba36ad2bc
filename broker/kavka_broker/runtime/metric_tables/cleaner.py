"""The log cleaner."""

from typing import Final

from kavka_broker.runtime.metric_tables.family import Kind, Row

CLEANER: Final[tuple[Row, ...]] = (
    (
        "kafka_log_logcleaner_max_buffer_utilization_percent",
        Kind.GAUGE,
        (),
        "How full the offset map of the last cleaning was. Near log.cleaner.io.buffer.load.factor, it ended early.",
    ),
    (
        "kafka_log_logcleaner_cleaner_recopy_percent",
        Kind.GAUGE,
        (),
        "What the last cleaning has written, of what it has replaced.",
    ),
    ("kafka_log_logcleaner_max_clean_time_secs", Kind.GAUGE, (), "How long the last cleaning took."),
    (
        "kafka_log_logcleaner_max_compaction_delay_secs",
        Kind.GAUGE,
        (),
        "How long the log that has waited most is beyond max.compaction.lag.ms.",
    ),
    (
        "kafka_log_logcleanermanager_max_dirty_percent",
        Kind.GAUGE,
        (),
        "Dirty share of the dirtiest compacted log, when the cleaner looked last.",
    ),
    (
        "kavka_cleaner_since_last_run_seconds",
        Kind.GAUGE,
        (),
        "Time since the cleaner looked for a log to clean.",
    ),
    (
        "kavka_cleaner_uncleanable_partitions",
        Kind.GAUGE,
        ("directory",),
        "Compacted logs that hold something that cannot be read, and are not cleaned.",
    ),
    (
        "kafka_log_logcleanermanager_uncleanable_bytes",
        Kind.GAUGE,
        ("directory",),
        "Bytes of logs that are not cleaned because something in them cannot be read.",
    ),
    ("kavka_cleaner_runs_total", Kind.COUNTER, (), "Cleanings that came to their end."),
    ("kavka_cleaner_read_bytes_total", Kind.COUNTER, (), "Bytes that cleanings have read."),
    ("kavka_cleaner_written_bytes_total", Kind.COUNTER, (), "Bytes that cleanings have written."),
    (
        "kavka_cleaner_progress_ratio",
        Kind.GAUGE,
        (),
        "How far the cleaning under way has come, from 0 to 1; of several the least far, 0 where there is none.",
    ),
)
