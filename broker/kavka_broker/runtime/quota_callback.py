"""The class of `client.quota.callback.class`: loaded at the start, and told what changes in the cluster."""

from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import entry_points
from typing import Final

from kavka_broker.core.config.broker import BrokerConfig
from kavka_broker.core.config.definition import ConfigError
from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.loop.slices import Cost, Slices, Work
from kavka_broker.loop.timers import Timers
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.metadata.broker_registration_change_record import BrokerRegistrationChangeRecord
from kavka_broker.protocol.messages.metadata.partition_change_record import PartitionChangeRecord
from kavka_broker.protocol.messages.metadata.partition_record import PartitionRecord
from kavka_broker.protocol.messages.metadata.register_broker_record import RegisterBrokerRecord
from kavka_broker.protocol.messages.metadata.remove_topic_record import RemoveTopicRecord
from kavka_broker.protocol.messages.metadata.unregister_broker_record import UnregisterBrokerRecord
from kavka_broker.quotas.callback import ClientQuotaCallback, Cluster
from kavka_broker.quotas.callback_runner import QuotaCalls

KEY: Final = "client.quota.callback.class"
GROUP: Final = "kavka.quota_callback"
SETTLING_MS: Final = 1_000
"""Changes within this time are told together."""
PARTITION_COST: Final = 1  # of a slice
TOLD: Final = frozenset(
    {
        BrokerRegistrationChangeRecord,
        PartitionChangeRecord,
        PartitionRecord,
        RegisterBrokerRecord,
        RemoveTopicRecord,
        UnregisterBrokerRecord,
    }
)


def load(config: BrokerConfig) -> ClientQuotaCallback | None:
    """Load and configure the callback; None where the configuration names none. Raises ConfigError."""
    name = config[KEY]
    if not name:
        return None
    try:
        callback = named(name)()
        if not isinstance(callback, ClientQuotaCallback):
            raise TypeError("it is not derived from kavka_broker.quotas.callback.ClientQuotaCallback")
        callback.configure(dict(config.given))
    except Exception as error:
        raise ConfigError(KEY, f"{name} cannot be used: {type(error).__name__}: {error}") from error
    return callback


def named(name: str) -> type[ClientQuotaCallback]:
    """Find the class by `module:Class` or by its entry point. Raises LookupError, and what its module raises."""
    module, colon, attribute = name.partition(":")
    if colon:
        found: type[ClientQuotaCallback] = getattr(import_module(module), attribute)
        return found
    for point in entry_points(group=GROUP, name=name):
        loaded: type[ClientQuotaCallback] = point.load()
        return loaded
    raise LookupError(f"no entry point {name} in the group {GROUP}; write module:Class, or install its package")


class ClusterNews:
    """Tells a callback of topics, leaders and brokers, at the start and after they have changed."""

    def __init__(self, node_id: int, metadata: Metadata, calls: QuotaCalls, timers: Timers, slices: Slices) -> None:
        self._node_id = node_id
        self._metadata = metadata
        self._calls = calls
        self._timers = timers
        self._slices = slices
        self._is_due = False
        self._telling: object = None  # keeps the task of a long work alive

    def apply(self, records: Sequence[Message]) -> None:
        """Tell of these records, soon."""
        if not self._is_due and not TOLD.isdisjoint({type(record) for record in records}):
            self._is_due = True
            self._timers.after(SETTLING_MS, self.tell)

    def tell(self) -> None:
        """Tell what stands in the metadata now."""
        self._is_due = False
        self._telling = self._slices.run(self._told())

    def _told(self) -> Work[None]:
        brokers = tuple(broker.broker_id for broker in self._metadata.brokers if not broker.fenced)
        leaders, cost = dict[str, tuple[int, ...]](), Cost()
        for topic in list(self._metadata.topics):
            leaders[topic.name] = tuple(topic.partitions[index].leader for index in sorted(topic.partitions))
            if cost.add(PARTITION_COST * len(topic.partitions) + 1):
                yield
        self._calls.cluster_changed(Cluster(self._node_id, brokers, leaders))
