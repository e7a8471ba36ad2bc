"""The partitions of this broker, kept equal to what the controller has committed.

`apply` is told of every committed metadata record, after the image has it. It opens the logs of partitions that are
placed here, closes those that are gone, and hands over leadership and configuration. The listeners of leadership
(the group coordinator) hear of each change.
"""

from collections.abc import Callable, Iterable, Iterator

from kavka_broker.core.config.broker import BrokerConfig
from kavka_broker.core.config.topic import LogConfig
from kavka_broker.core.metadata.effective import EffectiveConfig
from kavka_broker.core.metadata.image import Metadata
from kavka_broker.core.metadata.topics import PartitionState, Topic
from kavka_broker.logs import get
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.metadata.config_record import ConfigRecord
from kavka_broker.protocol.messages.metadata.partition_change_record import PartitionChangeRecord
from kavka_broker.protocol.messages.metadata.partition_record import PartitionRecord
from kavka_broker.protocol.messages.metadata.remove_topic_record import RemoveTopicRecord
from kavka_broker.replica.partition import Partition
from kavka_broker.seams import Clock
from kavka_broker.storage.log_manager import LogManager

log = get("replica")

TOPIC_RESOURCE = 2
BROKER_RESOURCE = 4
LeadershipListener = Callable[[Partition, bool], None]


class ReplicaManager:
    """All partitions of this broker by topic and index."""

    def __init__(self, node_id: int, config: BrokerConfig, metadata: Metadata, logs: LogManager, clock: Clock) -> None:
        self._node_id = node_id
        self._effective = EffectiveConfig(config, metadata.configs)
        self._metadata = metadata
        self._logs = logs
        self._clock = clock
        self._topics: dict[str, dict[int, Partition]] = {}
        self.leadership_listeners: list[LeadershipListener] = []

    def __iter__(self) -> Iterator[Partition]:
        for partitions in self._topics.values():
            yield from partitions.values()

    def get(self, topic: str, index: int) -> Partition | None:
        partitions = self._topics.get(topic)
        return None if partitions is None else partitions.get(index)

    def leader(self, topic: str, index: int) -> Partition:
        """The partition, led by this broker. Raises UNKNOWN_TOPIC_OR_PARTITION or NOT_LEADER_OR_FOLLOWER."""
        partitions = self._topics.get(topic)
        partition = None if partitions is None else partitions.get(index)
        if partition is not None and partition.is_leader:
            return partition
        known = self._metadata.topics.get(topic)
        if known is None or index not in known.partitions:
            raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if partition is None and self._node_id in known.partitions[index].replicas:
            raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR)
        raise BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def load(self) -> None:
        """Host everything that the image places on this broker. Called once, before the listeners open."""
        for topic in self._metadata.topics:
            self._host(topic)
        self._logs.remove_strays({(p.topic, p.index) for p in self})

    def apply(self, records: Iterable[Message]) -> None:
        """The controller has committed these records, and the image has replayed them."""
        topic_ids: dict[bytes, None] = {}
        configs: dict[str, None] = {}
        for record in records:
            match record:
                case PartitionRecord() | PartitionChangeRecord():
                    topic_ids[record.topic_id] = None
                case RemoveTopicRecord():
                    self._drop(record.topic_id)
                case ConfigRecord() if record.resource_type == TOPIC_RESOURCE:
                    configs[record.resource_name] = None
                case ConfigRecord() if record.resource_type == BROKER_RESOURCE:
                    configs.update(dict.fromkeys(self._topics))
        for topic_id in topic_ids:
            topic = self._metadata.topics.by_id(topic_id)
            if topic is not None:
                self._host(topic)
        for name in configs:
            self._reconfigure(name)

    def close(self) -> None:
        """Nobody is served any more; the logs are closed by their manager."""
        for partition in self:
            partition.close(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def _host(self, topic: Topic) -> None:
        config: LogConfig | None = None
        for index, state in topic.partitions.items():
            if self._node_id not in state.replicas:
                continue
            partition = self.get(topic.name, index)
            if partition is not None and partition.topic_id == topic.topic_id:
                self._hand_over(partition, state)
                continue
            config = config or self._topic_config(topic.name)
            self._open(topic, index, state, config)

    def _open(self, topic: Topic, index: int, state: PartitionState, config: LogConfig) -> None:
        try:
            opened = self._logs.create(topic.name, index, topic.topic_id, config, self._clock.now_ms())
        except BrokerError as error:
            log.error("partition.offline", topic=topic.name, partition=index, reason=str(error))
            return
        partition = Partition(topic.name, index, opened, state, self._node_id, self._clock)
        self._topics.setdefault(topic.name, {})[index] = partition
        if partition.is_leader:
            self._tell(partition, True)

    def _hand_over(self, partition: Partition, state: PartitionState) -> None:
        was_leader, epoch = partition.is_leader, partition.leader_epoch
        partition.apply(state)
        if partition.is_leader and (not was_leader or partition.leader_epoch != epoch):
            self._tell(partition, True)
        elif was_leader and not partition.is_leader:
            self._tell(partition, False)

    def _drop(self, topic_id: bytes) -> None:
        name = next((p.topic for p in self if p.topic_id == topic_id), None)
        if name is None:
            return
        for partition in self._topics.pop(name).values():
            if partition.is_leader:
                self._tell(partition, False)
            partition.close(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            self._logs.delete(partition.topic, partition.index)

    def _reconfigure(self, name: str) -> None:
        config = self._topic_config(name)
        for partition in self._topics.get(name, {}).values():
            partition.log.config = config

    def _topic_config(self, name: str) -> LogConfig:
        return self._effective.topic(name)

    def _tell(self, partition: Partition, is_leader: bool) -> None:
        for listener in self.leadership_listeners:
            listener(partition, is_leader)
