"""A topic, made the way a client makes it."""

from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.servers import Server

SECONDS_MAX = 60.0


def create_topic(server: Server, topic: str, partitions: int = 1, replicas: int = 1, **config: str) -> None:
    """Create a topic, and wait until the broker has said that it is there."""
    admin = AdminClient({"bootstrap.servers": server.bootstrap})
    settings = {key.replace("_", "."): value for key, value in config.items()}
    admin.create_topics([NewTopic(topic, partitions, replicas, config=settings)])[topic].result(SECONDS_MAX)
