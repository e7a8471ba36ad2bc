"""The limits that an operator sets on transactions, by Kafka's names."""

from dataclasses import dataclass

TRANSACTIONS_PER_PARTITION_MAX = 100_000
"""Transactional ids that one partition of `__transaction_state` holds; past this, new ones are refused. Whoever may
write may also make up ids, and each costs memory until it expires."""
TRANSACTIONS_BYTES_MAX = 96 * 1024 * 1024
"""Of the ids of one partition and the partitions in their transactions: an id may have 32,767 characters."""


@dataclass(frozen=True, slots=True)
class TransactionSettings:
    """Settings of all transactions; the comment behind each field is its config."""

    timeout_ms_max: int = 900_000  # transaction.max.timeout.ms
    expiration_ms: int = 604_800_000  # transactional.id.expiration.ms
    overdue_every_ms: int = 10_000  # transaction.abort.timed.out.transaction.cleanup.interval.ms
    expire_every_ms: int = 3_600_000  # transaction.remove.expired.transaction.cleanup.interval.ms
    append_timeout_ms: int = 30_000  # request.timeout.ms
    refuses_late_requests: bool = True  # kavka.transaction.connection.verification.enable
    serves_two_phase_commit: bool = False  # transaction.two.phase.commit.enable
