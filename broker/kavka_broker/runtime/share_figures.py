"""The figures of share groups: of the share partitions that a broker leads, and of the states that it coordinates."""

from collections import Counter
from typing import Final

from kavka_broker.coordinator.share.share_counts import ShareCounts
from kavka_broker.coordinator.share.share_leader import ShareLeader
from kavka_broker.coordinator.share.share_reading import oldest_ms
from kavka_broker.coordinator.share.share_service import Sharing
from kavka_broker.core.client_names import label_of
from kavka_broker.loop.slices import Cost, Work
from kavka_broker.runtime.partition_figures import Sample

READ_COST: Final = 100
"""The cost of reading where a record waits, of a slice."""


def share_samples(sharing: Sharing, now_ms: int) -> Work[list[Sample]]:
    """Count what share groups have, some share partitions a slice."""
    fetches, cost = sharing.fetches, Cost()
    by_pair = dict(fetches.counts.by_pair)
    served = in_flight = 0
    waiting, ages_ms = Counter[ShareCounts](), Counter[ShareCounts]()
    for leader in list(fetches.share_partitions):
        if leader.window is not None:
            served += 1
            in_flight += leader.window.in_flight
            waiting[leader.counts] += max(0, leader.partition.high_watermark - leader.window.start_offset)
            if leader.counts is not fetches.counts.total:
                known = leader.oldest
                ages_ms[leader.counts] = max(ages_ms[leader.counts], age_ms(leader, now_ms))
                if leader.oldest is not known and cost.add(READ_COST):
                    yield
        if cost.add(1):
            yield
    found: list[Sample] = [
        ("kavka_share_sessions", (), len(fetches.sessions.by_key)),
        ("kavka_share_partitions", (), served),
        ("kavka_share_records_in_flight", (), in_flight),
        ("kavka_share_states", (), sum(len(shard.states.by_key) for shard in sharing.coordinator.shards)),
    ]
    found += [("kavka_share_records_total", (event,), count) for event, count in fetches.counts.total.by_event.items()]
    depths, records, ages = Counter[tuple[str, ...]](), Counter[tuple[str, ...]](), Counter[tuple[str, ...]]()
    for (group_id, topic), counts in by_pair.items():
        labels = label_of(group_id), label_of(topic)  # which long names may have in common
        depths[labels] += waiting[counts]
        ages[labels] = max(ages[labels], ages_ms[counts])
        for event in ("redelivered", "archived"):
            records[*labels, event] += counts.by_event[event]
    found += [("kavka_share_group_waiting_records", labels, depth) for labels, depth in depths.items()]
    found += [("kavka_share_group_oldest_record_seconds", labels, age / 1000) for labels, age in ages.items()]
    found += [("kavka_share_group_records_total", labels, count) for labels, count in records.items()]
    return found


def age_ms(leader: ShareLeader, now_ms: int) -> int:
    """Return the age of the first record that is not done with; 0 where none waits. It is read once."""
    assert leader.window is not None, leader
    offset = max(leader.window.start_offset, leader.partition.log.log_start_offset)
    if offset >= leader.partition.high_watermark:
        return 0
    if leader.oldest[0] != offset:
        leader.oldest = offset, oldest_ms(leader.partition, offset)
    timestamp_ms = leader.oldest[1]
    return 0 if timestamp_ms is None else max(0, now_ms - timestamp_ms)
