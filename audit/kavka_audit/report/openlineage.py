"""Who writes what and who reads it as events of OpenLineage 2-0-2, a line each, for catalogues that know the format.

A principal is a job: its inputs are the topics that it has read, its outputs those that it has written, with the bytes
that the trail tells. A run of a job lasts as long as it uses the same topics, and its id follows from these: each run
of the analytics tells the same run again, with its sums to date, and a catalogue that takes it in counts nothing twice.
Another topic makes another run. OpenLineage wants a start and an end of each, although clients of Kafka mostly have
none. A topic is a dataset of `kafka://HOST:PORT`, and has an event of its own where its owner is known.
"""

import json
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from typing import Any, Final

from kavka_audit.lake.database import connected
from kavka_audit.lake.directory import Lake

PRODUCER: Final = "https://kavka.dev/audit"
SPECIFICATION: Final = "https://openlineage.io/spec/"
EVENTS: Final = f"{SPECIFICATION}2-0-2/OpenLineage.json#/$defs/"
FACETS: Final = {
    "jobType": "2-0-4/JobTypeJobFacet",
    "inputStatistics": "1-0-0/InputStatisticsInputDatasetFacet",
    "outputStatistics": "1-0-2/OutputStatisticsOutputDatasetFacet",
    "ownership": "1-0-1/OwnershipDatasetFacet",
}
USES_MAX: Final = 100_000
"""Pairs of a principal and a topic that are told: those that move most."""
Json = dict[str, Any]
USES: Final = """
    SELECT moved.principal, moved.operation, moved.topic, moved.bytes, moved.records, first.first_ms
    FROM (
        SELECT principal, operation, topic, sum(bytes) AS bytes, sum(records) AS records
        FROM read_parquet(?) GROUP BY principal, operation, topic ORDER BY bytes DESC, principal, topic LIMIT ?
    ) AS moved
    JOIN read_parquet(?) AS first USING (principal, operation, topic)
    ORDER BY principal, operation, topic
"""


@dataclass(frozen=True, slots=True)
class Use:
    """What a principal has read from a topic, or written to it."""

    principal: str
    operation: str
    topic: str
    bytes: int
    records: int | None
    first_ms: int


def uses_of(lake: Lake) -> list[Use]:
    """Return the uses that move most, from the answers, by principal."""
    moved, first = (str(lake.tables / f"{name}.parquet") for name in ("top_talkers", "first_access"))
    with connected() as connection:
        rows = connection.execute(USES, [moved, USES_MAX, first]).fetchall()
    return [
        Use(principal, operation, topic, int(size), None if records is None else int(records), first_ms)
        for principal, operation, topic, size, records, first_ms in rows
    ]


def lineage_events(cluster: str, now_ms: int, uses: Sequence[Use], owners: Mapping[str, str]) -> str:
    """Return the events. `cluster` is an address of it, HOST:PORT, or its id."""
    namespace = f"kafka://{cluster}"
    events = [*_runs(namespace, now_ms, uses), *_datasets(namespace, now_ms, uses, owners)]
    return "".join(json.dumps(event, sort_keys=True) + "\n" for event in events)


def _runs(namespace: str, now_ms: int, uses: Iterable[Use]) -> Iterator[Json]:
    for principal, found in groupby(uses, lambda use: use.principal):
        used = list(found)
        edges = json.dumps([namespace, principal, sorted((use.operation, use.topic) for use in used)])
        run = {"runId": str(uuid.uuid5(uuid.NAMESPACE_URL, edges))}
        what = {
            "job": {"namespace": namespace, "name": principal, "facets": {"jobType": _facet("jobType", **STREAMING)}},
            "inputs": [_input(namespace, use) for use in used if use.operation == "READ"],
            "outputs": [_output(namespace, use) for use in used if use.operation == "WRITE"],
        }
        began_ms = min(now_ms, *(use.first_ms for use in used))
        for kind, moment_ms in (("START", began_ms), ("COMPLETE", now_ms)):
            yield _event("RunEvent", moment_ms) | {"eventType": kind, "run": run} | what


STREAMING: Final = {"processingType": "STREAMING", "integration": "KAFKA", "jobType": "CLIENT"}


def _datasets(namespace: str, now_ms: int, uses: Iterable[Use], owners: Mapping[str, str]) -> Iterator[Json]:
    for topic in sorted({use.topic for use in uses} & owners.keys()):
        facets = {"ownership": _facet("ownership", owners=[{"name": owners[topic]}])}
        yield _event("DatasetEvent", now_ms) | {"dataset": {"namespace": namespace, "name": topic, "facets": facets}}


def _input(namespace: str, use: Use) -> Json:
    return _dataset(namespace, use) | {"inputFacets": {"inputStatistics": _facet("inputStatistics", size=use.bytes)}}


def _output(namespace: str, use: Use) -> Json:
    sums = {"size": use.bytes} if use.records is None else {"size": use.bytes, "rowCount": use.records}
    return _dataset(namespace, use) | {"outputFacets": {"outputStatistics": _facet("outputStatistics", **sums)}}


def _dataset(namespace: str, use: Use) -> Json:
    return {"namespace": namespace, "name": use.topic}


def _event(kind: str, moment_ms: int) -> Json:
    moment = datetime.fromtimestamp(moment_ms / 1000, UTC).isoformat(timespec="milliseconds")
    return {"eventTime": moment, "producer": PRODUCER, "schemaURL": EVENTS + kind}


def _facet(name: str, **fields: Any) -> Json:
    path = FACETS[name]
    schema = f"{SPECIFICATION}facets/{path}.json#/$defs/{path.partition('/')[2]}"
    return {"_producer": PRODUCER, "_schemaURL": schema, **fields}
