"""Columns of the Parquet files, with their types in SQL. Times are in milliseconds since 1970, sizes in bytes.

Columns are added and never renamed or given another meaning: files that an earlier version wrote stay readable, and
what they do not have reads as NULL.
"""

from collections.abc import Mapping
from typing import Final

Columns = Mapping[str, str]

ENTRIES: Final[Columns] = {
    # Where it stood, and in which chain.
    "partition": "INTEGER",
    "offset": "BIGINT",
    "kind": "VARCHAR",  # event, loss, head, end; dead: no entry of a trail; missed: deleted before it was read
    "source": "VARCHAR",  # the chain: id of a node, and epoch of a broker or start of a controller
    "node": "INTEGER",
    "sequence": "BIGINT",
    "written_ms": "BIGINT",
    "lost": "BIGINT",  # events that a loss stands for, or records that were missed
    "problem": "VARCHAR",  # why a record is dead
    # What happened.
    "class_uid": "INTEGER",  # of OCSF: 3002 a login, 6002 a start or stop, 6003 what was asked of the API
    "outcome": "VARCHAR",  # allowed, denied, delayed
    "start_ms": "BIGINT",
    "end_ms": "BIGINT",
    "times": "BIGINT",
    "operation": "VARCHAR",
    "principal": "VARCHAR",
    "client_id": "VARCHAR",
    "address": "VARCHAR",
    "resource_type": "VARCHAR",
    "resource": "VARCHAR",
    # How much, of use.
    "bytes": "BIGINT",
    "records": "BIGINT",
    # By which quota, of throttling.
    "quota_type": "VARCHAR",
    "quota_entity": "VARCHAR",  # JSON: the names of user and client-id, null for the default
    "quota_limit": "DOUBLE",
    "throttle_time_ms": "BIGINT",
    "throttle_time_ms_max": "BIGINT",
    # From what to what, of a change.
    "config_key": "VARCHAR",
    "config_value": "VARCHAR",
    "config_previous": "VARCHAR",
    # The record itself: of one that is dead, and the value of an event in another version of the schema.
    "record_headers": "VARCHAR",  # JSON: keys, and values in base64
    "record_value": "BLOB",
}

COUNTS: Final[Columns] = {
    # producer, consumer: what a client tells. log: what stands in a partition. uncounted: offsets of a partition that
    # were not looked at. dead: a record that is no report. missed: reports deleted before they were read.
    "tier": "VARCHAR",
    "name": "VARCHAR",  # the consumer's group, or the producer's name
    # A report: the process that wrote it, its number, and the place of this row in it.
    "instance": "VARCHAR",
    "sequence": "BIGINT",
    "place": "INTEGER",
    "told_ms": "BIGINT",
    # Records: a run of offsets, or a number of records without.
    "topic": "VARCHAR",
    "partition": "INTEGER",
    "bucket_ms": "BIGINT",  # of the records' timestamps
    "first_offset": "BIGINT",
    "last_offset": "BIGINT",
    "unplaced": "BIGINT",
    "problem": "VARCHAR",  # why a report is dead
}

#: Where chains were cut: the last entry of each that was deleted, as it was too old.
CUTS: Final[Columns] = {"source": "VARCHAR", "sequence": "BIGINT"}

#: The cluster as it was when last asked, by table.
SNAPSHOT: Final[Mapping[str, Columns]] = {
    "brokers": {"node": "INTEGER"},
    "counted": {"topic": "VARCHAR"},  # topics whose records the last run counted to the end
    "partitions": {"topic": "VARCHAR", "partition": "INTEGER", "leader": "INTEGER", "records": "BIGINT"},
    # Whose a topic or a principal is. The cluster has no name: it stands for all that has no such label.
    "labels": {"kind": "VARCHAR", "name": "VARCHAR", "label": "VARCHAR", "value": "VARCHAR"},
    # Days whose completeness is judged again, and the verdicts on the others.
    "stale": {"day_ms": "BIGINT"},
    "verdicts": {
        "topic": "VARCHAR",
        "bucket_ms": "BIGINT",
        "tier": "VARCHAR",
        "name": "VARCHAR",
        "expected": "BIGINT",
        "missing": "BIGINT",
        "duplicates": "BIGINT",
        "late": "BIGINT",
        "completeness": "DOUBLE",
        "is_closed": "BOOLEAN",
    },
    "topics": {"topic": "VARCHAR", "partitions": "INTEGER", "bytes": "BIGINT", "is_internal": "BOOLEAN"},
    "grants": {
        "principal": "VARCHAR",
        "host": "VARCHAR",
        "operation": "VARCHAR",
        "resource_type": "VARCHAR",
        "pattern_type": "VARCHAR",
        "resource": "VARCHAR",
        "permission": "VARCHAR",
    },
}
