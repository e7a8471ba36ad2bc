"""Who may commit and fetch offsets of a group of the new protocol.

An epoch that is older than the member's is right for partitions that the member has had since then (KIP-1251): a commit
that was on its way while the epoch moved is not lost. One that has another partition in it is refused as a whole.
"""

from collections.abc import Collection, Iterable
from typing import Final

from kavka_broker.core.consumer_group.checks import member_of
from kavka_broker.core.consumer_group.state import ConsumerGroup, ConsumerMember
from kavka_broker.protocol.errors import BrokerError, ErrorCode

__all__ = ["check_committer", "check_fetcher", "check_transactional_committer", "subscribed_of"]

EPOCH_VERSION: Final = 9
"""OffsetCommit names a member's epoch from this version on."""

Place = tuple[bytes, int]
"""A partition: the id of its topic, and its index."""


def check_committer(group: ConsumerGroup, epoch: int, member_id: str, version: int, places: Iterable[Place]) -> None:
    """Check that this client may commit offsets of all these partitions now. Raises BrokerError."""
    if epoch < 0 and not group.members:
        return
    member = member_of(group, member_id)
    if version < EPOCH_VERSION and member.classic is None:
        problem = f"OffsetCommit version {EPOCH_VERSION} or above must be used by members of this group."
        raise BrokerError(ErrorCode.UNSUPPORTED_VERSION, problem)
    if not _is_current(member, epoch, places):
        raise _stale(member, epoch)


def _is_current(member: ConsumerMember, epoch: int, places: Iterable[Place]) -> bool:
    """Whether the member may commit these partitions in this epoch."""
    if epoch == member.epoch:
        return True
    return 0 <= epoch < member.epoch and all(_since(member, *place) <= epoch for place in places)


def _since(member: ConsumerMember, topic_id: bytes, index: int) -> int:
    """The epoch since which the member has a partition; after every epoch where it has not got it."""
    for partitions in (member.assigned, member.revoking):
        since = partitions.get(topic_id, {}).get(index)
        if since is not None:
            return since
    return member.epoch


def check_transactional_committer(
    group: ConsumerGroup, epoch: int, member_id: str, instance_id: str | None, places: Iterable[Place]
) -> None:
    """Check that this client may commit offsets of all these partitions in a transaction now; a producer that names no
    member may always. Raises BrokerError.
    """
    if epoch < 0 and (not group.members or (epoch == -1 and not member_id and instance_id is None)):
        return
    member = member_of(group, member_id)
    if not _is_current(member, epoch, places):
        raise _stale(member, epoch)


def check_fetcher(group: ConsumerGroup, epoch: int, member_id: str | None) -> None:
    """Check that this client may fetch offsets now: a member in its present epoch, or a tool. Raises BrokerError."""
    if member_id is None and epoch < 0:
        return
    member = member_of(group, member_id or "")
    if epoch != member.epoch:
        raise _stale(member, epoch)


def _stale(member: ConsumerMember, epoch: int) -> BrokerError:
    """The error of another epoch than the member's, which to a member of the classic protocol is its generation."""
    if member.classic is not None:
        problem = f"The received generation id {epoch} does not match the expected member epoch {member.epoch}."
        return BrokerError(ErrorCode.ILLEGAL_GENERATION, problem)
    problem = f"The received member epoch {epoch} does not match the expected member epoch {member.epoch}."
    return BrokerError(ErrorCode.STALE_MEMBER_EPOCH, problem)


def subscribed_of(group: ConsumerGroup, topics: Collection[str]) -> set[str]:
    """Those of these topics that a member subscribes to: they keep their offsets."""
    return set(topics) & group.all_topics()
