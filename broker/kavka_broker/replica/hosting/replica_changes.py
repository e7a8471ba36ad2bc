"""What committed records are about, as far as the partitions of a broker are concerned."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from kavka_broker.core.metadata.image.metadata import ABOUT_BROKERS
from kavka_broker.core.metadata.image.topics import Topics
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.metadata.clear_elr_record import ClearElrRecord
from kavka_broker.protocol.messages.metadata.config_record import ConfigRecord
from kavka_broker.protocol.messages.metadata.partition_change_record import PartitionChangeRecord
from kavka_broker.protocol.messages.metadata.partition_record import PartitionRecord
from kavka_broker.protocol.messages.metadata.remove_topic_record import RemoveTopicRecord

Place = tuple[bytes, int]  # topic id, partition


@dataclass(slots=True)
class Changes:
    """Topics and partitions that a batch of records has changed."""

    partitions: dict[Place, None] = field(default_factory=dict)
    removed: list[bytes] = field(default_factory=list)  # topic ids
    configs: list[ConfigRecord] = field(default_factory=list)
    is_about_brokers: bool = False


def changes_of(records: Iterable[Message], topics: Topics) -> Changes:
    """Return the changes of these records; the image has replayed them already."""
    changes = Changes()
    for record in records:
        match record:
            case PartitionRecord() | PartitionChangeRecord():
                changes.partitions[record.topic_id, record.partition_id] = None
            case ClearElrRecord(name):  # changes each partition, and its epoch, like any other record
                for topic in topics.named(name):
                    changes.partitions.update(dict.fromkeys((topic.topic_id, index) for index in topic.partitions))
            case RemoveTopicRecord():
                changes.removed.append(record.topic_id)
            case ConfigRecord():
                changes.configs.append(record)
            case _:
                changes.is_about_brokers |= isinstance(record, ABOUT_BROKERS)
    return changes
