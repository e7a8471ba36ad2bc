"""How many replicas must be in sync before a partition commits.

A record is committed when every member of the in-sync replica set has it; the high watermark is the offset after the
last committed record, and consumers read only below it. `LeaderState.committed_end` says how far that is. It does not
move while fewer than min.insync.replicas are in sync (KIP-966, strict min ISR): what is committed then survives the
loss of any broker that the topic's owner wanted to survive.

A topic with fewer replicas than min.insync.replicas would never commit; as in Kafka the effective minimum is then
the number of its replicas.
"""


def effective_min_isr(min_insync_replicas: int, replica_count: int) -> int:
    """The number of in-sync replicas that acks=all needs on this partition."""
    assert replica_count >= 1
    return max(1, min(min_insync_replicas, replica_count))
