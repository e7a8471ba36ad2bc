"""Finds where records of a topic are: its partitions, and the offsets at which a time or an offset begins in each."""

from collections.abc import Collection, Mapping
from typing import Any

from kavka_operator.kafka.admin import AdminError


def partitions_of(client: Any, topic: str, numbers: Collection[int] = ()) -> list[Any]:
    """The partitions of these numbers, or all, as the client library has them. Raises AdminError."""
    from kafka import TopicPartition

    known = client.partitions_for_topic(topic)
    if not known:
        raise AdminError(f'there is no topic "{topic}", or it may not be described')
    if missing := sorted(set(numbers) - known):
        raise AdminError(f"{topic} has no partition {missing[0]}; it has {len(known)}")
    return [TopicPartition(topic, number) for number in sorted(numbers or known)]


def begin_offsets(
    client: Any, ends: Mapping[Any, int], offset: int | None = None, begin_ms: int | None = None
) -> dict[Any, int]:
    """The offset at which each partition of `ends` is begun: the one that is nearest to `offset`, or the first from a
    time on, in ms since 1970: 0 is the start, None the end.
    """
    if offset is None and begin_ms is None:
        return dict(ends)
    partitions = list(ends)
    first: Mapping[Any, int] = client.beginning_offsets(partitions)
    if offset is not None:
        return {partition: min(max(offset, first[partition]), ends[partition]) for partition in partitions}
    if begin_ms == 0:
        return dict(first)
    found = client.offsets_for_times(dict.fromkeys(partitions, begin_ms))
    return {partition: ends[partition] if (at := found[partition]) is None else at.offset for partition in partitions}
