"""Where records come from: ranges of offsets of the audit topic, by Spark's Kafka source."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from kavka_audit.lake.ingest import Range

TOPIC: Final = "__audit_events"
GROUP: Final = "kavka-audit"
OPTIONS: Final = {
    # A task reads a range alone, so it may take much at once.
    "kafka.max.poll.records": "5000",
    "kafka.max.partition.fetch.bytes": str(8 << 20),
    "kafka.fetch.max.bytes": str(8 << 20),
    "kafka.client.id": "kavka-audit",
    # Nothing is committed under this name; but where groups have access rules, a user needs READ of it.
    "kafka.group.id": GROUP,
    "includeHeaders": "true",
    # Records that retention deletes while they are read end the run; the next one counts them as missed.
    "failOnDataLoss": "true",
}


class Source(Protocol):
    """Gives the records of ranges, with the columns of Spark's Kafka source; each task has those of one part of one."""

    def records(self, spark: Any, ranges: Sequence[Range], task_records_max: int) -> Any:
        """Return the records as a frame."""


class Stream(Protocol):
    """Gives all records, as a query without an end does."""

    def stream(self, spark: Any, begins: Mapping[int, int], batch_records_max: int) -> Any:
        """Return the records as a frame that grows. A query without a checkpoint begins at these offsets, by partition;
        of one with a checkpoint they name the partitions.
        """


class KafkaSource:
    """The audit topic of a cluster. `properties` are those that a Java client takes to be let in."""

    def __init__(self, bootstrap: str, properties: Mapping[str, str]) -> None:
        self._options = {
            **OPTIONS,
            "kafka.bootstrap.servers": bootstrap,
            **{f"kafka.{name}": value for name, value in properties.items()},
        }

    def records(self, spark: Any, ranges: Sequence[Range], task_records_max: int) -> Any:
        """Return the records as a frame."""
        partitions, begins, ends = [], {}, {}
        for partition, first, until in ranges:
            partitions.append(partition)
            begins[str(partition)], ends[str(partition)] = first, until
        reader = spark.read.format("kafka").options(**self._options)
        return (
            reader.option("assign", json.dumps({TOPIC: partitions}))
            .option("startingOffsets", json.dumps({TOPIC: begins}))
            .option("endingOffsets", json.dumps({TOPIC: ends}))
            .option("maxRecordsPerPartition", str(task_records_max))
            .load()
        )

    def stream(self, spark: Any, begins: Mapping[int, int], batch_records_max: int) -> Any:
        """Return the records as a frame that grows; what retention has deleted is passed over, and no end of it."""
        reader = spark.readStream.format("kafka").options(**self._options)
        return (
            reader.option("assign", json.dumps({TOPIC: sorted(begins)}))
            .option("startingOffsets", json.dumps({TOPIC: {str(name): first for name, first in begins.items()}}))
            .option("maxOffsetsPerTrigger", str(batch_records_max))
            .option("minPartitions", str(spark.sparkContext.defaultParallelism))
            .option("failOnDataLoss", "false")
            .load()
        )
