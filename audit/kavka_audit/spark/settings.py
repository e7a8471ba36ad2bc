"""What a session of Spark is set to where nothing says otherwise, as plain data."""

import re
from collections.abc import Mapping
from typing import Final

MEMORY: Final = "1g"
"""The heap of the driver, which in one process is that of the executors too."""
COLLECTOR: Final = "-XX:+UseParallelGC"
"""Collects garbage with less work than Java's usual collector, whose pauses are short: here nobody waits for one."""
NAMES_COLLECTOR: Final = re.compile(r"-XX:[+-]Use\w+GC\b")
EXECUTOR_OPTIONS: Final = ("spark.executor.defaultJavaOptions", "spark.executor.extraJavaOptions")
DEFAULTS: Final = {
    "spark.master": "local[*]",
    "spark.app.name": "kavka-audit",
    "spark.log.level": "ERROR",
    "spark.ui.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.compression.codec": "zstd",
    # Rows take some 20 bytes in a file and hundreds in memory: by the size of their files, ten million looked small
    # enough to be sent to every task.
    "spark.sql.sources.fileCompressionFactor": "20",
    # Java never compiles a method with more bytecode than this; one that makes rows took three times as long. Above the
    # limit Spark divides its code into small methods.
    "spark.sql.codegen.hugeMethodLimit": "8000",
    # What a job has written counts only when it is over, and takes its place by a name that this engine gives: so its
    # tasks need not wait for each other's renames, and no file beside them says that all are there.
    "spark.hadoop.mapreduce.fileoutputcommitter.algorithm.version": "2",
    "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
}
ALWAYS: Final = {
    # pyspark itself says otherwise, whatever a file says; a command's output is not drawn over.
    "spark.ui.showConsoleProgress": "false",
    # Spark's newer way asks an admin client and leaves out internal topics, as the audit topic is one.
    "spark.sql.streaming.kafka.useDeprecatedOffsetFetching": "true",
    # Of headers with the same name the last counts, as it does for a verifier of the chain.
    "spark.sql.mapKeyDedupPolicy": "LAST_WIN",
}
DELTA: Final = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    # Each commit reads the table's log first, which is small: Delta divides that for fifty processors.
    "spark.databricks.delta.snapshotPartitions": "1",
    # As Spark writes times unless it is told, no reader knows whether they are UTC.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.session.timeZone": "UTC",  # of days
}
"""What a session is set to that writes Delta tables: what Delta Lake asks for, and times as deltalake writes them."""
LOCAL: Final = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    # Few processors share a question, which Spark's 200 parts would keep busy with beginning and ending.
    "spark.sql.shuffle.partitions": "8",
}
"""Where all runs in this process: nobody else need reach it, and work is divided for its processors."""


def missing(given: Mapping[str, str]) -> dict[str, str]:
    """Return what is to be set beside what is given."""
    settings = dict(DEFAULTS)
    if given.get("spark.master", settings["spark.master"]).startswith("local"):
        settings |= LOCAL
    if collector(*(given.get(name, "") for name in EXECUTOR_OPTIONS)):
        # Spark puts these options before the others, so that they take none away.
        settings[EXECUTOR_OPTIONS[0]] = COLLECTOR
    return {name: value for name, value in settings.items() if name not in given} | ALWAYS


def collector(*given: str) -> str:
    """Return the option of Java for the collector; none where what is given names one, as Java takes no two."""
    return "" if any(map(NAMES_COLLECTOR.search, given)) else COLLECTOR
