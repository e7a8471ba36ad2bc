"""What a controller must not forget: the epoch it is in, its vote, its leader.

Kafka's `quorum-state` file, a line of JSON. Version 1 (KIP-853) knows the directory of the candidate; version 0 has the
voters instead, which now come from the log. It is on disk before a vote is given or a leader begins.

Epochs are of 32 bits and never go back, so a node that may say any epoch may use them all up, for good: there is none
after the last. An election uses one, and those of a century fit into half of them; so what is said is believed up to
there, and beyond only in steps.
"""

import json
from dataclasses import dataclass
from typing import Final

from kavka_broker.protocol.uuids import ZERO, from_text, to_text

FILE_NAME: Final = "quorum-state"
NOBODY: Final = -1
#: The last epoch: no election begins it, because no epoch could follow.
EPOCH_MAX: Final = 2**31 - 1
#: An epoch up to here is believed from any node; a higher one, if it is no farther than that from the node's own.
EPOCH_HEARD_MAX: Final = 2**30
EPOCH_LEAP_MAX: Final = 2**20
assert EPOCH_HEARD_MAX + EPOCH_LEAP_MAX < EPOCH_MAX, "one leap uses up no more than some of the epochs"


class UnreadableState(ValueError):
    """The file is not a quorum state that this version can read."""


@dataclass(frozen=True, slots=True)
class QuorumState:
    """The vote and the epoch."""

    leader_epoch: int = 0
    leader_id: int = NOBODY
    voted_id: int = NOBODY
    voted_directory_id: bytes = ZERO


def is_believable(epoch: int, own_epoch: int) -> bool:
    """Whether a quorum can have come to this epoch, as far as a node knows that was in `own_epoch`."""
    return epoch < EPOCH_MAX and epoch <= max(EPOCH_HEARD_MAX, own_epoch + EPOCH_LEAP_MAX)


def format_state(state: QuorumState) -> str:
    """Format the file's text, in the order in which Kafka writes it."""
    assert 0 <= state.leader_epoch <= EPOCH_MAX, state
    fields = {
        "leaderId": state.leader_id,
        "leaderEpoch": state.leader_epoch,
        "votedId": state.voted_id,
        "votedDirectoryId": to_text(state.voted_directory_id),
        "data_version": 1,
    }
    return json.dumps(fields, separators=(",", ":"))


def parse_state(text: str) -> QuorumState:
    """Parse the state in a file. Raises UnreadableState."""
    try:
        fields = json.loads(text)
        version = fields["data_version"]
        if version not in (0, 1):
            raise UnreadableState(f"data_version {version} is of a newer Kafka")
        return QuorumState(
            leader_epoch=int(fields["leaderEpoch"]),
            leader_id=int(fields["leaderId"]),
            voted_id=int(fields["votedId"]),
            voted_directory_id=from_text(fields["votedDirectoryId"]) if version else ZERO,
        )
    except (ValueError, KeyError, TypeError) as error:
        if isinstance(error, UnreadableState):
            raise
        raise UnreadableState(f"{text[:80]!r} is no quorum state: {error}") from None
