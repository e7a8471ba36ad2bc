"""What of a node a step may change that the invariants look at, beside its disk.

Most steps change nothing of it, and to see that is done after each of them: what is here is written for speed.
"""

from typing import Any, Final

FIRST_PARTITION: Final = 3  # of a state: what stands before is of the node


def state_of(node: Any, broker: Any) -> list[Any]:
    """Two that are equal have nothing between them to look at. One entry for each replica, in their order."""
    quorum, topics = broker.quorum, broker.serving.replicas.partitions.by_topic
    state, log, runner = quorum.node._state, quorum.log._log.state, quorum._runner
    quorum_state = (
        state.high_watermark,
        state.role,
        state.state.leader_epoch,
        runner is None or runner.is_failed,
        quorum.metadata.offset,
        log.end_offset,
        log.start_offset,
        log.truncations,
    )
    of_partitions = [
        (
            partition.topic_id,
            partition.high_watermark,
            partition.is_leader,
            partition.state.leader_epoch,
            (log := partition.log.state).end_offset,
            log.start_offset,
            log.truncations,
        )
        for partitions in topics.values()
        for partition in partitions.values()
    ]
    return [node.lives, node.disk.cuts, quorum_state, *of_partitions]
