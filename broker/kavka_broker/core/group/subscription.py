"""What consumers tell each other through the group, as far as the broker looks into it.

To the coordinator a member's metadata is opaque. Of groups of protocol type `consumer` it reads one thing: the topics
that are subscribed to, so that their offsets neither expire nor are deleted under a running consumer.
"""

from kavka_broker.core.group.embedded_protocol import CONSUMER_PROTOCOL_TYPE, read_subscription
from kavka_broker.core.group.state import ClassicGroup
from kavka_broker.protocol.errors import ProtocolViolation

__all__ = ["CONSUMER_PROTOCOL_TYPE", "subscribed_topics"]


def subscribed_topics(group: ClassicGroup) -> frozenset[str] | None:
    """All topics that members subscribe to; None where that is unknown."""
    if group.protocol_type != CONSUMER_PROTOCOL_TYPE or group.protocol_name is None:
        return None
    topics: set[str] = set()
    for member in group.members.values():
        subscription = member.metadata(group.protocol_name)
        try:
            topics.update(read_subscription(subscription).topics)
        except ProtocolViolation:
            return None
    return frozenset(topics)
