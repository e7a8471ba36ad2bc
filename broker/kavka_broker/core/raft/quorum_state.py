"""What a controller must not forget: the epoch it is in, whom it voted for, who leads.

Kafka's `quorum-state` file, a line of JSON. Version 1 (KIP-853) knows the directory of the candidate; version 0 has the
voters instead, which now come from the log. It is on disk before a vote is given or a leader begins.
"""

import json
from dataclasses import dataclass
from typing import Final

from kavka_broker.protocol.uuids import ZERO, from_text, to_text

FILE_NAME: Final = "quorum-state"
NOBODY: Final = -1


class UnreadableState(ValueError):
    """The file is not a quorum state that this version can read."""


@dataclass(frozen=True, slots=True)
class QuorumState:
    """The vote and the epoch."""

    leader_epoch: int = 0
    leader_id: int = NOBODY
    voted_id: int = NOBODY
    voted_directory_id: bytes = ZERO


def format_state(state: QuorumState) -> str:
    """The file's text, in the order in which Kafka writes it."""
    fields = {
        "leaderId": state.leader_id,
        "leaderEpoch": state.leader_epoch,
        "votedId": state.voted_id,
        "votedDirectoryId": to_text(state.voted_directory_id),
        "data_version": 1,
    }
    return json.dumps(fields, separators=(",", ":"))


def parse_state(text: str) -> QuorumState:
    """The state of a file. Raises UnreadableState."""
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
