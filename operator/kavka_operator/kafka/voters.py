"""AddRaftVoter and RemoveRaftVoter (KIP-853), which kafka-python knows by number and has no messages for.

Its classes are made from Kafka's schemas; these two pairs have theirs in `schemas`.
"""

from typing import Any

from kafka.protocol.api_message import ApiMessage

from kavka_operator.domain.plan import AddVoter, RemoveVoter
from kavka_operator.kafka.topic_ids import uuid_of

DUPLICATE_VOTER, VOTER_NOT_FOUND = 126, 127
CHANGED_ALREADY = {DUPLICATE_VOTER, VOTER_NOT_FOUND}
"""Another client was faster, or the answer to the first try was lost; the next look tells."""
SCHEMAS = f"{__package__}.schemas"


class AddRaftVoterRequest(ApiMessage, load_json=SCHEMAS):  # type: ignore[call-arg, misc]
    """The request that gives a controller a vote."""


class AddRaftVoterResponse(ApiMessage, load_json=SCHEMAS):  # type: ignore[call-arg, misc]
    """The answer, once the change is committed."""


class RemoveRaftVoterRequest(ApiMessage, load_json=SCHEMAS):  # type: ignore[call-arg, misc]
    """The request that takes a controller's vote away."""


class RemoveRaftVoterResponse(ApiMessage, load_json=SCHEMAS):  # type: ignore[call-arg, misc]
    """The answer, once the change is committed."""


def add_request(action: AddVoter, timeout_ms: int) -> Any:
    """The request for an action; its answer may take as long as the timeout."""
    listener = AddRaftVoterRequest.Listener(name=action.listener, host=action.host, port=action.port)
    return AddRaftVoterRequest(
        cluster_id=None,
        timeout_ms=timeout_ms,
        voter_id=action.node,
        voter_directory_id=uuid_of(action.directory_id),
        listeners=[listener],
        ack_when_committed=True,
    )


def remove_request(action: RemoveVoter) -> Any:
    """The request for an action."""
    return RemoveRaftVoterRequest(
        cluster_id=None, voter_id=action.node, voter_directory_id=uuid_of(action.directory_id)
    )
