"""How far a partition is committed.

A record is committed when every member of the in-sync replica set has it; the high watermark is the offset after the
last committed record, and consumers read only below it. Two rules guard it:

- it never moves back on a leader;
- it does not move while fewer than min.insync.replicas are in sync (KIP-966, strict min ISR): what is committed
  then survives the loss of any broker that the topic's owner wanted to survive.

A topic with fewer replicas than min.insync.replicas would never commit; as in Kafka the effective minimum is then
the number of its replicas.
"""

from collections.abc import Collection


def effective_min_isr(min_insync_replicas: int, replica_count: int) -> int:
    """The number of in-sync replicas that acks=all needs on this partition."""
    assert replica_count >= 1
    return max(1, min(min_insync_replicas, replica_count))


def advance(high_watermark: int, isr_log_end_offsets: Collection[int], min_isr: int) -> int:
    """The high watermark after the leader learnt these log end offsets of its ISR (its own among them)."""
    assert isr_log_end_offsets, "the leader is always in its own ISR"
    if len(isr_log_end_offsets) < min_isr:
        return high_watermark
    return max(high_watermark, min(isr_log_end_offsets))
