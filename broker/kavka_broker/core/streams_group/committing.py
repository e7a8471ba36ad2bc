"""Who may commit and fetch offsets of a streams group.

An epoch that is older than the member's is right for source topics whose tasks the member has had since then, as in
`core.consumer_group.committing`.
"""

from collections.abc import Iterable
from typing import Final

from kavka_broker.core.streams_group.checks import member_of
from kavka_broker.core.streams_group.state import StreamsGroup, StreamsMember
from kavka_broker.protocol.errors import BrokerError, ErrorCode

__all__ = ["check_committer", "check_fetcher", "check_transactional_committer"]

EPOCH_VERSION: Final = 9
"""OffsetCommit names a member's epoch from this version on."""

Place = tuple[str, int]
"""A partition: the name of its topic, and its index."""


def check_committer(group: StreamsGroup, epoch: int, member_id: str, version: int, places: Iterable[Place]) -> None:
    """Check that this client may commit offsets of all these partitions now. Raises BrokerError."""
    if epoch < 0 and not group.members:
        return
    member = member_of(group, member_id)
    if version < EPOCH_VERSION:
        problem = (
            f"OffsetCommit version {EPOCH_VERSION} or above must be used by members using the streams group protocol"
        )
        raise BrokerError(ErrorCode.UNSUPPORTED_VERSION, problem)
    _check_epoch(group, member, epoch, places)


def check_transactional_committer(
    group: StreamsGroup, epoch: int, member_id: str, instance_id: str | None, places: Iterable[Place]
) -> None:
    """Check that this client may commit offsets of all these partitions in a transaction now; a producer that names no
    member may always. Raises BrokerError.
    """
    if epoch < 0 and (not group.members or (epoch == -1 and not member_id and instance_id is None)):
        return
    _check_epoch(group, member_of(group, member_id), epoch, places)


def _check_epoch(group: StreamsGroup, member: StreamsMember, epoch: int, places: Iterable[Place]) -> None:
    """Raises STALE_MEMBER_EPOCH."""
    if epoch == member.epoch:
        return
    if epoch > member.epoch:
        problem = f"Received member epoch {epoch} is newer than current member epoch {member.epoch}."
        raise BrokerError(ErrorCode.STALE_MEMBER_EPOCH, problem)
    reads = {} if group.topology is None else group.topology.subtopology_of
    for topic, partition in places:
        part = reads.get(topic)
        if part is None:
            raise BrokerError(ErrorCode.STALE_MEMBER_EPOCH, f"Topic {topic} is not in the topology.")
        since = _since(member, part, partition)
        if since is None:
            problem = f"Task {part}-{partition} is not assigned or pending revocation for member."
            raise BrokerError(ErrorCode.STALE_MEMBER_EPOCH, problem)
        if epoch < since:
            problem = (
                f"Received member epoch {epoch} is older than assignment epoch {since} for task {part}-{partition}."
            )
            raise BrokerError(ErrorCode.STALE_MEMBER_EPOCH, problem)


def _since(member: StreamsMember, part: str, partition: int) -> int | None:
    """The epoch since which the member has an active task, None where it has not got it."""
    for tasks in (member.assigned.active, member.revoking.active):
        since = tasks.get(part, {}).get(partition)
        if since is not None:
            return since
    return None


def check_fetcher(group: StreamsGroup, epoch: int, member_id: str | None) -> None:
    """Check that this client may fetch offsets now: a member in its present epoch, or a tool. Raises BrokerError."""
    if member_id is None and epoch < 0:
        return
    member = member_of(group, member_id or "")
    if epoch != member.epoch:
        problem = f"The received member epoch {epoch} does not match the expected member epoch {member.epoch}."
        raise BrokerError(ErrorCode.STALE_MEMBER_EPOCH, problem)
