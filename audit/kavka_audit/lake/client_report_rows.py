"""Makes rows of the lake of a report of a client's counts: a row for each run of offsets.

A record that is no report becomes one row of the tier `dead` with the reason, and none of what it says counts.
"""

from collections.abc import Iterator, Sequence

from kavka_audit.completeness.offset_ranges import Counted
from kavka_audit.completeness.reports import decode
from kavka_audit.lake.rows import Found, Row


def rows_of_report(record: Found) -> Sequence[Row]:
    """Return the rows of a record."""
    try:
        report = decode(record.value)
    except ValueError as problem:
        words = str(problem)[:500].encode(errors="replace").decode()
        return ({"tier": "dead", "partition": record.partition, "problem": words},)
    head: Row = {name: getattr(report, name) for name in ("tier", "name", "instance", "sequence", "told_ms")}
    found = [row for counted in report.counts for row in rows_of(counted)]
    # A report without a count is a row too: its sequence is there.
    return [head | {"place": place} | row for place, row in enumerate(found or [{}])]


def rows_of(counted: Counted) -> Iterator[Row]:
    """Give a row for each run, and one for the records without an offset."""
    place = dict(counted.place._asdict())
    for first, last in counted.runs:
        yield place | {"first_offset": first, "last_offset": last}
    if counted.unplaced:
        yield place | {"unplaced": counted.unplaced}


def missed_reports(partition: int, first: int, until: int) -> Row:
    """Return the row for reports that the topic had deleted before they were read."""
    return {"tier": "missed", "partition": partition, "first_offset": first, "last_offset": until - 1}
