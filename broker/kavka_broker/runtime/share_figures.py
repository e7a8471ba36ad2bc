"""The figures of share groups: of the share partitions that a broker leads, and of the states that it coordinates."""

from collections import Counter

from kavka_broker.coordinator.share.share_counts import ShareCounts
from kavka_broker.coordinator.share.share_service import Sharing
from kavka_broker.core.client_names import label_of
from kavka_broker.loop.slices import Cost, Work
from kavka_broker.runtime.partition_figures import Sample


def share_samples(sharing: Sharing) -> Work[list[Sample]]:
    """Count what share groups have, some share partitions a slice."""
    fetches, cost = sharing.fetches, Cost()
    by_pair = dict(fetches.counts.by_pair)
    served = in_flight = 0
    waiting = Counter[ShareCounts]()
    for leader in list(fetches.share_partitions):
        if leader.window is not None:
            served += 1
            in_flight += leader.window.in_flight
            waiting[leader.counts] += max(0, leader.partition.high_watermark - leader.window.start_offset)
        if cost.add(1):
            yield
    found: list[Sample] = [
        ("kavka_share_sessions", (), len(fetches.sessions.by_key)),
        ("kavka_share_partitions", (), served),
        ("kavka_share_records_in_flight", (), in_flight),
        ("kavka_share_states", (), sum(len(shard.states.by_key) for shard in sharing.coordinator.shards)),
    ]
    found += [("kavka_share_records_total", (event,), count) for event, count in fetches.counts.total.by_event.items()]
    depths, records = Counter[tuple[str, ...]](), Counter[tuple[str, ...]]()
    for (group_id, topic), counts in by_pair.items():
        labels = label_of(group_id), label_of(topic)  # which long names may have in common
        depths[labels] += waiting[counts]
        for event in ("redelivered", "archived"):
            records[*labels, event] += counts.by_event[event]
    found += [("kavka_share_group_waiting_records", labels, depth) for labels, depth in depths.items()]
    found += [("kavka_share_group_records_total", labels, count) for labels, count in records.items()]
    return found
