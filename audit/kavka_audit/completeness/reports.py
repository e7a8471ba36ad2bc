"""What a client tells: records of the topic `__audit_counts`, as JSON.

    {"version": 1, "tier": "producer", "name": "shop", "instance": "9f0c...", "sequence": 7, "told_ms": 1790000000000,
     "counts": [{"topic": "orders", "partition": 3, "bucket_ms": 1789999800000, "ranges": [[1000, 1499]],
                 "unplaced": 0}]}

`tier` is `producer` or `consumer`; `name` is the consumer's group, or whatever a producer calls itself. `instance` is
drawn again by each process, and `sequence` counts its reports from 0: a report that stands twice counts once, and one
that is not there is seen. `ranges` are offsets, first and last, that were written and acknowledged, or read, since the
report before; `unplaced` are records whose offsets the client did not learn.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from kavka_audit.completeness.offset_ranges import BUCKET_MS, Counted, Place, Run

TOPIC: Final = "__audit_counts"
VERSION: Final = 1
TIERS: Final = ("producer", "consumer")
RUNS_MAX: Final = 2_000
"""Runs of one report: with the longest names of topics it stays below a megabyte."""
VALUE_BYTES_MAX: Final = 1 << 20
NAME_MAX: Final = 256
PARTITION_MAX: Final = 2**31 - 1
NUMBER_MAX: Final = 2**63 - 2


@dataclass(frozen=True, slots=True)
class Report:
    """A report of one instance of a client."""

    tier: str
    name: str
    instance: str
    sequence: int
    told_ms: int
    counts: tuple[Counted, ...]


def parts(counts: Iterable[Counted]) -> Iterator[tuple[Counted, ...]]:
    """Divide counts so that each part makes one report."""
    part: list[Counted] = []
    room = RUNS_MAX
    for place, runs, unplaced in counts:
        for start in range(0, max(len(runs), 1), RUNS_MAX):
            some = runs[start : start + RUNS_MAX]
            if max(len(some), 1) > room:
                yield tuple(part)
                part, room = [], RUNS_MAX
            part.append(Counted(place, some, unplaced if start == 0 else 0))
            room -= max(len(some), 1)
    if part:
        yield tuple(part)


def encode(report: Report) -> bytes:
    """Return the value of the record."""
    counts = [{**place._asdict(), "ranges": runs, "unplaced": unplaced} for place, runs, unplaced in report.counts]
    head = {"version": VERSION, "tier": report.tier, "name": report.name, "instance": report.instance}
    return json.dumps(head | {"sequence": report.sequence, "told_ms": report.told_ms, "counts": counts}).encode()


def decode(value: bytes | None) -> Report:
    """Return the report of a record. Raises ValueError, which names the field, where it is none."""
    found = _object(_json(value), "value")
    if found.get("version") != VERSION:
        raise ValueError(f"version: {found.get('version')!r} is not {VERSION}")
    if (tier := _text(found, "tier")) not in TIERS:
        raise ValueError(f"tier: {tier!r} is not one of {', '.join(TIERS)}")
    counts = tuple(_counted(_object(count, "counts")) for count in _list(found, "counts"))
    names = _text(found, "name"), _text(found, "instance")
    return Report(tier, *names, _number(found, "sequence"), _number(found, "told_ms"), counts)


def _json(value: bytes | None) -> Any:
    if value is None or len(value) > VALUE_BYTES_MAX:
        raise ValueError(f"value: none, or more than {VALUE_BYTES_MAX} bytes")
    try:
        return json.loads(value)
    except RecursionError:
        raise ValueError("value: no JSON of a report: it is too deep") from None


def _counted(count: dict[str, Any]) -> Counted:
    place = Place(_text(count, "topic"), _number(count, "partition", PARTITION_MAX), _number(count, "bucket_ms"))
    if place.bucket_ms % BUCKET_MS:
        raise ValueError(f"bucket_ms: {place.bucket_ms} is no multiple of {BUCKET_MS}")
    return Counted(place, [_run(run) for run in _list(count, "ranges")], _number(count, "unplaced"))


def _run(run: Any) -> Run:
    if not isinstance(run, list) or len(run) != 2:
        raise ValueError("ranges: a range is a first offset and a last")
    first, last = (_whole(offset, "ranges", NUMBER_MAX) for offset in run)
    if last < first:
        raise ValueError(f"ranges: {last} is before {first}")
    return first, last


def _object(value: Any, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{name}: no JSON object")  # noqa: TRY004  # one kind of error for whatever a record holds
    return value


def _list(fields: dict[str, Any], name: str) -> list[Any]:
    value = fields.get(name)
    if not isinstance(value, list):
        raise ValueError(f"{name}: no list")  # noqa: TRY004  # as above
    return value


def _text(fields: dict[str, Any], name: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str) or len(value) > NAME_MAX:
        raise ValueError(f"{name}: no text of up to {NAME_MAX} characters")
    return value.encode(errors="replace").decode()  # JSON may hold half of a character


def _number(fields: dict[str, Any], name: str, largest: int = NUMBER_MAX) -> int:
    return _whole(fields.get(name), name, largest)


def _whole(value: Any, name: str, largest: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= largest:
        raise ValueError(f"{name}: no whole number from 0 to {largest}")
    return value
