"""What a topic gets that does not say how many partitions and replicas it wants."""

from kavka_broker.core.config.broker import BrokerConfig
from kavka_broker.core.metadata.decide.topics import Defaults


def defaults(config: BrokerConfig) -> Defaults:
    """What a topic gets that does not say."""
    return Defaults(config["num.partitions"], config["default.replication.factor"])
