"""The figures of streams groups that a broker coordinates."""

from collections import Counter

from kavka_broker.coordinator.groups.group_coordinator import GroupCoordinator
from kavka_broker.core.streams_group.state import StreamsState
from kavka_broker.loop.slices import Cost, Work
from kavka_broker.runtime.partition_figures import Sample

MEMBERS_PER_COST = 20  # that the state of a group is read from


def streams_samples(groups: GroupCoordinator) -> Work[list[Sample]]:
    """Count the groups by their states, some a slice."""
    states, cost = Counter[str](), Cost()
    for shard in list(groups.shards()):
        for group in shard.streams.all():
            states[group.state.value] += 1
            if cost.add(1 + len(group.members) // MEMBERS_PER_COST):
                yield
    counts = "kafka_server_group_coordinator_metrics_streams_group_count"
    return [
        *((counts, (state.value,), states[state.value]) for state in StreamsState),
        (
            "kafka_server_group_coordinator_metrics_streams_group_rebalance_count",
            (),
            groups.streams_rebalances_total,
        ),
    ]
