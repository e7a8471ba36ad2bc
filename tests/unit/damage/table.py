"""What comes of each kind of damage to each kind of file, on a node that nobody else has anything of.

That is the hardest case: nothing can be taken from another replica, or another controller. `docs/reliability.md` has
the same table; a test of documents compares the two.
"""

from typing import Final

DAMAGES: Final = ("flipped", "zeroed", "truncated", "swapped", "stale", "missing")

WHOLE: Final = "whole"  # every record is served, from the first start on
LESS: Final = (
    "less"  # what can be read is served at its offset, the rest is CORRUPT_MESSAGE or gone; no offset is reused
)
OFFLINE: Final = "offline"  # the partition says how to mend it, and serves nothing; the others go on
REFUSED: Final = "refused"  # the node does not start, and names what is damaged and what to do

#: By kind of file, in the order of `DAMAGES`.
TABLE: Final = {
    ".log (active)": (LESS, LESS, LESS, OFFLINE, LESS, LESS),
    ".log (older)": (LESS, LESS, LESS, OFFLINE, WHOLE, LESS),
    ".log header": (LESS, LESS, LESS, OFFLINE, LESS, LESS),
    ".index": (WHOLE,) * 6,
    ".timeindex": (WHOLE,) * 6,
    ".txnindex": (WHOLE,) * 6,
    ".snapshot": (WHOLE,) * 6,
    "leader-epoch-checkpoint": (WHOLE,) * 6,
    "partition.metadata": (OFFLINE, OFFLINE, OFFLINE, OFFLINE, WHOLE, OFFLINE),
    "recovery-point-offset-checkpoint": (WHOLE,) * 6,
    "replication-offset-checkpoint": (WHOLE,) * 6,
    "log-start-offset-checkpoint": (WHOLE,) * 6,
    ".kafka_cleanshutdown": (WHOLE,) * 6,
    "meta.properties": (REFUSED, REFUSED, REFUSED, REFUSED, WHOLE, REFUSED),
    "quorum-state": (WHOLE,) * 6,
    "metadata .log": (REFUSED, REFUSED, REFUSED, REFUSED, REFUSED, REFUSED),
    "metadata .checkpoint": (WHOLE, WHOLE, WHOLE, WHOLE, WHOLE, WHOLE),
    "bootstrap.checkpoint": (WHOLE,) * 6,
}
