"""Groups that do not read on, or that have lost records before they read them."""

from collections.abc import Iterator

from kavka_operator.doctor.evidence import Examined, Finding, Group, Partition, PartitionKey, Severity, listed

WARNING = Severity.WARNING


def judged(seen: Examined) -> Iterator[Finding]:
    """The findings about groups."""
    partitions = {found.key: found for found in seen.partitions}
    groups = seen.groups or ()
    stuck = [f"{group.name} (lag {lag})" for group in groups if group.members == 0 and (lag := _lag(group, partitions))]
    if stuck:
        what = f"{len(stuck)} groups have records to read and no member that reads them"
        yield Finding(
            WARNING, "group-without-members", what, listed(stuck), "start their consumers, or delete the groups"
        )
    lost = [f"{group.name} at {name}" for group in groups for name in _out_of_range(group, partitions)]
    if lost:
        what = f"{len(lost)} places that groups have committed are not in the logs: records were deleted, or cut away"
        fix = "say where to go on: kafka-consumer-groups.sh --reset-offsets; keep records for longer"
        yield Finding(WARNING, "offset-out-of-range", what, listed(lost), fix)


def _lag(group: Group, partitions: dict[PartitionKey, Partition]) -> int:
    if group.lags is not None:
        return sum(lag for lag in group.lags.values() if lag is not None)
    ends = {key: partitions[key].end for key in group.committed if key in partitions}
    return sum(max(0, end - group.committed[key]) for key, end in ends.items() if end is not None)


def _out_of_range(group: Group, partitions: dict[PartitionKey, Partition]) -> Iterator[str]:
    if group.lags is not None:
        return  # a share group goes on at the start of the log by itself
    for key, offset in group.committed.items():
        found = partitions.get(key)
        if found is None or found.start is None or found.end is None or found.start <= offset <= found.end:
            continue
        yield f"{found.name}: {offset}, there are {found.start} to {found.end}"
