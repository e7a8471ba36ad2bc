"""Which topics have been deleted, for those who keep something by the name of a topic.

A topic of the same name may be made at once, and what groups have committed for the former must not count for it. To
forget that in all groups takes many turns of the loop, and a group may be asked for in between. So deletions are
numbered: who keeps something notes the number up to which it has forgotten, and is brought up to date before it is
looked at, or once its turn comes.
"""

from collections.abc import Iterable
from typing import Final

from kavka_broker.core.metadata.image.topics import Topics
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.metadata.partition_record import PartitionRecord
from kavka_broker.protocol.messages.metadata.remove_topic_record import RemoveTopicRecord
from kavka_broker.protocol.messages.metadata.topic_record import TopicRecord
from kavka_broker.protocol.uuids import ZERO

NAMES_MAX: Final = 100_000
"""Names of deleted topics that are kept, the latest ones: more than are deleted while a group log is loaded."""


class DeletedTopics:
    """The topic deletions that this broker has replayed. `number` is that of the latest."""

    def __init__(self, topics: Topics, names_max: int = NAMES_MAX) -> None:
        self._names_max = names_max
        self.number = 0
        self.changes = 0  # how often topics have come, gone, or got more partitions
        self.topics = topics
        self._names = dict[bytes, str]()  # names of existing topics by id: a deletion names only the id
        self._removed = dict[str, int]()  # the number of the latest deletion of each name, the oldest first
        self.follow()

    def follow(self) -> None:
        """Take the topics of the image; from now on `apply` is called with every change."""
        self._names = {topic.topic_id: topic.name for topic in self.topics}

    def apply(self, records: Iterable[Message]) -> bool:
        """Note the topics that these records create and delete; returns whether they delete any."""
        before = self.number
        for record in records:
            match record:
                case TopicRecord(name, topic_id):
                    self.changes += 1
                    self._names[topic_id] = name
                case PartitionRecord():
                    self.changes += 1
                case RemoveTopicRecord(topic_id):
                    self.changes += 1
                    self.number += 1
                    self._note(self._names.pop(topic_id, None))
        return self.number > before

    def _note(self, name: str | None) -> None:
        if name is None:
            return
        self._removed.pop(name, None)
        self._removed[name] = self.number
        if len(self._removed) > self._names_max:
            del self._removed[next(iter(self._removed))]

    def is_former(self, name: str, topic_id: bytes) -> bool:
        """Whether an offset of the log was committed for a topic that was deleted before the log was read: nothing has
        this name now, or a topic with another id than the commit named.

        This broker's image has every topic that the log names: records come from leaders of earlier epochs, whose
        images were older.
        """
        topic = self.topics.get(name)
        return topic is None or topic_id not in (ZERO, topic.topic_id)

    def is_gone(self, name: str, since: int) -> bool:
        """Whether the topic that had this name at deletion number `since` is deleted by now."""
        return self._removed.get(name, 0) > since or self.topics.get(name) is None
