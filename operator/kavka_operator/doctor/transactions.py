"""Transactions that are not ended in time: readers of committed records stop before them."""

from collections.abc import Iterator
from typing import Final

from kavka_operator.doctor.evidence import Examined, Finding, PartitionKey, Severity, listed
from kavka_operator.domain.transactions import OpenTransaction

TRANSACTION_STATE: Final = "__transaction_state"
MAX_TIMEOUT: Final = "transaction.max.timeout.ms"
MAX_TIMEOUT_MS: Final = 900_000
"""The default of `transaction.max.timeout.ms`, for brokers that do not tell their own."""
HELD_RECORDS: Final = 10_000
HELD_SECONDS: Final = 10.0
"""A busy partition has many records in transactions that are open for a moment only."""


def judged(seen: Examined) -> Iterator[Finding]:
    """The findings about transactions that are open for too long."""
    yield from _hanging(seen)
    yield from _overdue(seen)
    yield from _held_back(seen)


def _hanging(seen: Examined) -> Iterator[Finding]:
    """Transactions that no coordinator will end, as none knows of them.

    A coordinator that is away, or that hides transactions from this user, names none either. The first is asked here;
    the second would have aborted a transaction that is older than any timeout may be.
    """
    if any(partition.leader is None for partition in seen.partitions if partition.topic == TRANSACTION_STATE):
        return
    limit = _longest_seconds(seen)
    found = [transaction for transaction in seen.transactions or () if is_without_coordinator(transaction, limit)]
    if found:
        names = listed(f"{_place(key)} (producer {transaction.producer_id}, {_age(transaction)})"
                       for transaction in found for key in sorted(transaction.partitions))  # fmt: skip
        yield Finding(
            Severity.CRITICAL,
            "transaction-hangs",
            f"{len(found)} transactions hang: no coordinator knows of them, and readers with read_committed wait",
            names,
            "kafka-transactions.sh find-hanging, then abort",
        )


def is_without_coordinator(transaction: OpenTransaction, limit_seconds: float) -> bool:
    """Whether no coordinator knows the transaction, which is older than any that a coordinator would leave open."""
    seconds = transaction.open_seconds
    return transaction.coordinator is None and seconds is not None and seconds > limit_seconds


def _overdue(seen: Examined) -> Iterator[Finding]:
    """Transactions that their coordinator should have aborted."""
    late = [
        f"{transaction.name} (open {seconds:.0f} s, may be {timeout:.0f} s, {_holds(transaction)})"
        for transaction in seen.transactions or ()
        if (seconds := transaction.open_seconds) is not None
        and (timeout := transaction.timeout_seconds) is not None
        and seconds > 2 * timeout
    ]
    if late:
        yield Finding(
            Severity.CRITICAL,
            "transaction-overdue",
            f"{len(late)} transactions are open for longer than their timeout: readers with read_committed wait",
            listed(late),
            "see whether their coordinator's log says why; kafka-transactions.sh abort ends one in a partition",
        )


def _held_back(seen: Examined) -> Iterator[Finding]:
    """Partitions whose last stable offset is far behind."""
    far = [
        (transaction, key, records)
        for transaction in seen.transactions or ()
        if (transaction.open_seconds or 0.0) >= HELD_SECONDS
        for key, records in sorted(transaction.holds.items())
        if records >= HELD_RECORDS
    ]
    if far:
        yield Finding(
            Severity.WARNING,
            "stable-offset-held",
            f"readers with read_committed are held back in {len(far)} partitions by open transactions",
            listed(
                f"{_place(key)} ({records:,} records, by {transaction.name}, {_age(transaction)})"
                for transaction, key, records in far
            ),
            "end transactions sooner, or give their producers a shorter transaction.timeout.ms",
        )


def _longest_seconds(seen: Examined) -> float:
    told = [text for broker in seen.brokers if (text := broker.settings.get(MAX_TIMEOUT, "")).isdecimal()]
    return max(map(int, told), default=MAX_TIMEOUT_MS) / 1000


def _place(key: PartitionKey) -> str:
    return f"{key[0]}-{key[1]}"


def _age(transaction: OpenTransaction) -> str:
    if transaction.open_seconds is None:
        return "age not told"
    words = "open" if transaction.coordinator is not None else "silent for"
    return f"{words} {transaction.open_seconds:.0f} s"


def _holds(transaction: OpenTransaction) -> str:
    if not transaction.holds:
        return "holds nobody back"
    return f"holds {max(transaction.holds.values()):,} records back"
