"""A topic, made the way a client makes it, and what librdkafka is told of topics and brokers."""

from typing import Protocol

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, ClusterMetadata, NewTopic

SECONDS_MAX = 60.0


class Bootstrap(Protocol):
    """A broker, or a cluster of them, that clients reach."""

    @property
    def bootstrap(self) -> str: ...


def create_topic(server: Bootstrap, topic: str, partitions: int = 1, replicas: int = 1, **config: str) -> None:
    """Create a topic, and wait until the broker has said that it is there."""
    admin = AdminClient({"bootstrap.servers": server.bootstrap})
    settings = {key.replace("_", "."): value for key, value in config.items()}
    admin.create_topics([NewTopic(topic, partitions, replicas, config=settings)])[topic].result(SECONDS_MAX)


def metadata(admin: AdminClient, topic: str | None = None) -> ClusterMetadata:
    """What a broker says of the cluster. librdkafka gives up what it has asked of a broker that goes."""
    while True:
        try:
            return admin.list_topics(topic, timeout=SECONDS_MAX)
        except KafkaException as error:
            if error.args[0].code() != KafkaError._DESTROY_BROKER:
                raise
