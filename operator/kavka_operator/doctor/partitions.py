"""Partitions that cannot be used, or will not be once one broker more is away."""

from collections.abc import Iterator

from kavka_operator.doctor.evidence import Examined, Finding, Partition, Severity, listed

CRITICAL, WARNING = Severity.CRITICAL, Severity.WARNING


def judged(seen: Examined) -> Iterator[Finding]:
    """The findings about where replicas are and which are in sync."""
    yield from _offline(seen)
    yield from _behind(seen)
    yield from _alone(seen)
    yield from _one_rack(seen)


def _names(partitions: list[Partition]) -> str:
    return listed(partition.name for partition in partitions)


def _offline(seen: Examined) -> Iterator[Finding]:
    if found := [partition for partition in seen.partitions if partition.leader is None]:
        missing = sorted({replica for partition in found for replica in partition.replicas} - _ids(seen))
        evidence = f"no leader: {_names(found)}" + (
            f"; brokers {listed(map(str, missing))} are away" if missing else ""
        )
        yield Finding(CRITICAL, "offline", f"{len(found)} partitions cannot be used", evidence, "start those brokers")


def _ids(seen: Examined) -> set[int]:
    return {broker.id for broker in seen.brokers}


def _behind(seen: Examined) -> Iterator[Finding]:
    below: list[Partition] = []
    least: list[Partition] = []
    behind: list[Partition] = []
    for partition in seen.partitions:
        if partition.leader is None or len(partition.isr) >= len(partition.replicas):
            continue
        minimum = min(seen.number(partition.topic, "min.insync.replicas") or 1, len(partition.replicas))
        many = len(partition.isr)
        (below if many < minimum else least if many == minimum else behind).append(partition)
    fix = "look at the brokers whose replicas are missing: down, slow, or a full disk"
    if below:
        what = f"{len(below)} partitions take no record with acks=all"
        yield Finding(CRITICAL, "under-min-isr", what, f"fewer in sync than min.insync.replicas: {_names(below)}", fix)
    if least:
        what = f"{len(least)} partitions take no record with acks=all once one more replica is away"
        yield Finding(WARNING, "at-min-isr", what, f"in sync is just min.insync.replicas: {_names(least)}", fix)
    if behind:
        what = f"{len(behind)} partitions have fewer replicas in sync than they have"
        yield Finding(WARNING, "under-replicated", what, _names(behind), fix)


def _alone(seen: Examined) -> Iterator[Finding]:
    if len(seen.brokers) < 2:
        return  # there is nowhere else to go
    alone = [found for found in seen.partitions if len(found.replicas) == 1 and found.topic not in seen.internal]
    if alone:
        what = f"{len(alone)} partitions are away with one broker, and their records with its disk"
        fix = "give them more replicas: kafka-reassign-partitions.sh, or replicationFactor of a Topic"
        yield Finding(WARNING, "one-replica", what, f"replication factor 1: {_names(alone)}", fix)


def _one_rack(seen: Examined) -> Iterator[Finding]:
    racks = {broker.id: broker.rack for broker in seen.brokers}
    if len({rack for rack in racks.values() if rack is not None}) < 2:
        return
    found = []
    for partition in seen.partitions:
        places = {racks.get(replica) for replica in partition.replicas}
        if len(partition.replicas) > 1 and len(places) == 1 and None not in places:
            found.append(partition)
    if found:
        what = f"{len(found)} partitions are away with one rack"
        fix = "move replicas to other racks: kafka-reassign-partitions.sh"
        yield Finding(WARNING, "one-rack", what, f"all replicas on one rack: {_names(found)}", fix)
