"""Which offsets are read together: so many that every processor has work, so few that a death costs little."""

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
