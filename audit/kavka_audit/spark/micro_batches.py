"""Which offsets are read together: so many that every processor has work, so few that a death costs little.

Rounds have parts of many partitions; batches follow a topic in its order.
"""

from collections.abc import Iterator, Sequence

from kavka_audit.lake.ingest import Range


def rounds(ranges: Sequence[Range], file_records_max: int, tasks_max: int) -> Iterator[list[Range]]:
    """Give the ranges in rounds of at most so many files, with as many partitions in each as there are left."""
    left = {partition: (first, end) for partition, first, end in ranges}
    while left:
        share = max(1, tasks_max // len(left)) * file_records_max
        taken = []
        for partition, (first, end) in [*left.items()][:tasks_max]:
            until = min(end, first + share)
            taken.append((partition, first, until))
            del left[partition]
            if until < end:
                left[partition] = until, end
        yield taken


def batches(ranges: Sequence[Range], records_max: int) -> Iterator[list[Range]]:
    """Give the ranges in their order, in batches of at most so many records."""
    batch, room = list[Range](), records_max
    for partition, begin, end in ranges:
        first = begin
        while first < end:
            until = min(end, first + room)
            batch.append((partition, first, until))
            room -= until - first
            first = until
            if not room:
                yield batch
                batch, room = [], records_max
    if batch:
        yield batch
