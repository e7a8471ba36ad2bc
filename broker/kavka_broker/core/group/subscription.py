"""What consumers tell each other through the group, as far as the broker looks into it.

To the coordinator a member's metadata is opaque. Of groups of protocol type `consumer` it reads one thing: the topics
that are subscribed to, so that their offsets neither expire nor are deleted under a running consumer.
"""

from struct import error, unpack_from

from kavka_broker.core.group.state import ClassicGroup
from kavka_broker.protocol.codec import decode
from kavka_broker.protocol.errors import ProtocolViolation
from kavka_broker.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription

__all__ = ["CONSUMER_PROTOCOL_TYPE", "subscribed_topics"]

CONSUMER_PROTOCOL_TYPE = "consumer"
VERSION_BYTES = 2


def subscribed_topics(group: ClassicGroup) -> frozenset[str] | None:
    """All topics that members subscribe to; None where that is unknown."""
    if group.protocol_type != CONSUMER_PROTOCOL_TYPE or group.protocol_name is None:
        return None
    topics: set[str] = set()
    for member in group.members.values():
        subscription = member.metadata(group.protocol_name)
        try:
            topics.update(topics_of(subscription))
        except (ProtocolViolation, error):
            return None
    return frozenset(topics)


def topics_of(subscription: bytes) -> list[str]:
    """Topics of a subscription. Raises ProtocolViolation.

    A newer version is read as the newest known: fields are only ever added at its end.
    """
    (version,) = unpack_from(">h", subscription)
    known = min(version, ConsumerProtocolSubscription.VERSIONS[1])
    if known < 0:
        raise ProtocolViolation(f"subscription version {version}")
    return decode(ConsumerProtocolSubscription, known, memoryview(subscription)[VERSION_BYTES:]).topics
