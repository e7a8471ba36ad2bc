"""What an anomaly is, and the reason why Kafka allows it or not."""

from dataclasses import dataclass
from typing import Final

#: Anomalies that break a promise of Kafka, and the promise.
FATAL: Final = {
    "inconsistent-offsets": "an offset has one value forever",
    "duplicate": "a value of an idempotent producer is in one place",
    "phantom": "readers get what was sent, from the partition that it was sent to",
    "lost-write": "an acknowledged or visible value stays",
    "unseen": "readers get to every acknowledged value once nothing is under way",
    "aborted-read": "no reader gets a value of a transaction that failed (G1a)",
    "dirty-read": "no reader gets a value before the commit of its transaction was asked for",
    "precommitted-read": "no transaction reads what it wrote itself: it is not committed yet",
    "int-poll-skip": "within one operation a consumer passes over nothing",
    "int-nonmonotonic-poll": "within one operation a consumer goes forward only",
    "poll-skip": "a consumer with assigned partitions passes over nothing",
    "nonmonotonic-poll": "a consumer with assigned partitions goes forward only",
    "int-nonmonotonic-send": "values of one transaction have the order in which they were sent",
    "nonmonotonic-send": "values of one producer have the order in which they were sent",
    "G1c": "no information flows in a cycle: a transaction that was read has ended before its reader ends",
    "G1c-process": "the same, where each process does one thing after the other",
    "G1c-realtime": "the same, where what is over comes before what begins: nobody reads what is written later",
    "torn-transaction": "all values of a transaction are visible at the end, or none",
    "torn-offset": "the offset that a transaction commits counts if, and only if, its values are visible",
    "stale-offset": "a group is told the offset of the last transaction that has committed it",
    "aborted-offset": "no group is told the offset of a transaction that failed, or that none has asked to commit",
}

#: Anomalies that other systems rule out and Kafka does not promise to, and the reason.
ALLOWED: Final = {
    "G0": "transactions append to several partitions while others do, and nothing locks any of them",
    "G0-process": "as G0; a producer's next transaction may also overtake others",
    "G0-realtime": "as G0; what begins later may be appended before what others have appended, and not committed, yet",
    "G1c-ww": "a cycle with an order of appends in it: as G0",
    "G-single": "a poll ends where its answer is full: it may have one value of a transaction, and not another",
    "G-single-realtime": "the same: a reader may be behind what was over when it began",
    "G2": "the same of several readers",
    "int-send-skip": "values of others may come between two of one transaction",
    "poll-skip under subscribe": "a rebalance takes a partition away and may bring it back further on",
    "nonmonotonic-poll under subscribe": "after a rebalance a consumer begins at the committed offset again",
    "unseen before the end": "nobody may have come so far",
}


@dataclass(frozen=True, slots=True)
class Anomaly:
    """What is not as one might expect, in words that a person can check against the history."""

    name: str
    text: str

    def __post_init__(self) -> None:
        assert self.name in FATAL or self.name in ALLOWED, f"{self.name} is no anomaly"

    @property
    def is_fatal(self) -> bool:
        """Whether it breaks a promise of Kafka."""
        return self.name in FATAL

    def __str__(self) -> str:
        return f"{self.name}: {self.text}"
