"""Images as wholes: one made of records, one that takes another's place, and what changed in between.

A node has one committed image, which everybody in the process holds on to. When a snapshot replaces it, the object
stays and its contents change; whoever follows the records is told the records that lead from the old contents to the
new ones, as if they had been committed one by one.
"""

from collections.abc import Iterator

from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.metadata.client_quota_record import ClientQuotaRecord
from kavka_broker.protocol.messages.metadata.config_record import ConfigRecord
from kavka_broker.protocol.messages.metadata.remove_access_control_entry_record import (
    RemoveAccessControlEntryRecord,
)
from kavka_broker.protocol.messages.metadata.remove_topic_record import RemoveTopicRecord
from kavka_broker.protocol.messages.metadata.unregister_broker_record import UnregisterBrokerRecord

#: The image's attributes. Their contents are replaced in place, since subscribers hold references to them.
PARTS = ("brokers", "topics", "configs", "quotas", "acls", "credentials", "features", "producer_ids", "tokens")


def image_of(records: Iterator[Message], offset: int) -> Metadata:
    """A new image that stands at `offset`."""
    image = Metadata()
    for record in records:
        image.move_to(offset - 1)
        image.replay(record)
    image.move_to(offset)
    return image


def become(image: Metadata, other: Metadata) -> list[Message]:
    """Make `image` equal to `other`, which must not be used afterwards. Returns the records of the difference."""
    gone_rules = [RemoveAccessControlEntryRecord(at) for at in image.acls.rules if at not in other.acls.rules]
    records = [*_gone(image, other), *gone_rules, *other.records()]
    generation = image.brokers.generation + 1
    for name in PARTS:
        part = vars(getattr(image, name))
        part.clear()
        part.update(vars(getattr(other, name)))
    image.brokers.generation = generation
    image.transaction = other.transaction
    image.move_to(other.offset)
    return records


def _gone(image: Metadata, other: Metadata) -> Iterator[Message]:
    for topic in image.topics:
        if other.topics.by_id(topic.topic_id) is None:
            yield RemoveTopicRecord(topic.topic_id)
    for broker in image.brokers:
        if other.brokers.get(broker.broker_id) is None:
            yield UnregisterBrokerRecord(broker.broker_id, broker.epoch)
    configs = {(record.resource_type, record.resource_name, record.name) for record in other.configs.records()}
    for config in image.configs.records():
        if (config.resource_type, config.resource_name, config.name) not in configs:
            yield ConfigRecord(config.resource_type, config.resource_name, config.name, None)
    quotas = {(record.key, str(record.entity)) for record in other.quotas.records()}
    for quota in image.quotas.records():
        if (quota.key, str(quota.entity)) not in quotas:
            yield ClientQuotaRecord(quota.entity, quota.key, 0.0, remove=True)
