"""Leaders that are not where they should be: some brokers work, others look on."""

from collections import Counter
from collections.abc import Iterator

from kavka_operator.doctor.evidence import Examined, Finding, Severity, listed

SHARE_MAX = 1.5  # of the leaders that a broker would have if all had the same
MORE_MIN = 3  # partitions above that, below which nobody would move one


def judged(seen: Examined) -> Iterator[Finding]:
    """The findings about which replica leads."""
    here = {broker.id for broker in seen.brokers}
    led = [partition for partition in seen.partitions if partition.leader is not None]
    moved = [found for found in led if found.leader != found.replicas[0] and found.replicas[0] in found.isr]
    if moved:
        what = f"{len(moved)} partitions are not led by their preferred replica, which is in sync"
        evidence = listed(f"{found.name} by {found.leader}, not {found.replicas[0]}" for found in moved)
        fix = "kafka-leader-election.sh --election-type preferred --all-topic-partitions"
        yield Finding(Severity.WARNING, "not-preferred", what, evidence, fix)
    counts = Counter(dict.fromkeys(here, 0))
    counts.update(found.leader for found in led if found.leader is not None)
    even = len(led) / len(here) if here else 0.0
    many = [broker for broker in sorted(here) if counts[broker] > max(SHARE_MAX * even, even + MORE_MIN)]
    if many and len(here) > 1:
        evidence = ", ".join(f"broker {broker}: {counts[broker]}" for broker in sorted(here))
        what = f"leaders are not spread: broker {listed(map(str, many))} has more than its share"
        fix = "spread the first replicas by kafka-reassign-partitions.sh, then elect preferred leaders"
        yield Finding(Severity.WARNING, "unbalanced", what, evidence, fix)
