"""The figures of share groups: of the share partitions that a broker leads, and of the states that it coordinates."""

from collections.abc import Iterator

from kavka_broker.coordinator.sharing import Sharing
from kavka_broker.runtime.partition_figures import Sample


def share_samples(sharing: Sharing) -> Iterator[Sample]:
    fetches = sharing.fetches
    windows = [leader.window for leader in fetches.share_partitions if leader.window is not None]
    yield "kavka_share_sessions", (), len(fetches.sessions.by_key)
    yield "kavka_share_partitions", (), len(windows)
    yield "kavka_share_records_in_flight", (), sum(window.in_flight for window in windows)
    for event, count in fetches.counts.by_event.items():
        yield "kavka_share_records_total", (event,), count
    yield "kavka_share_states", (), sum(len(shard.states.by_key) for shard in sharing.coordinator.shards)
