"""Transactions that nobody ends: readers of committed records stop before them."""

from collections.abc import Iterator

from kavka_operator.doctor.evidence import Examined, Finding, Severity, listed


def judged(seen: Examined) -> Iterator[Finding]:
    """The findings about transactions that are open for longer than their timeout."""
    late = [found for found in seen.transactions or () if found.open_seconds > 2 * found.timeout_seconds]
    if late:
        names = listed(
            f"{found.transactional_id} (open {found.open_seconds:.0f} s, may be {found.timeout_seconds:.0f} s)"
            for found in late
        )
        what = f"{len(late)} transactions hang: readers with read_committed wait before them"
        yield Finding(
            Severity.CRITICAL, "transaction-hangs", what, names, "kafka-transactions.sh find-hanging, then abort"
        )
