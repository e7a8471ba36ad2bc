"""What a client finds in a partition that reads what is committed alone."""

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from tests.support.topics import SECONDS_MAX, Bootstrap


def read_committed(server: Bootstrap, topic: str, index: int) -> list[Message]:
    """Read all committed records of a partition, from its beginning to its stable end."""
    reader = Consumer(
        {
            "bootstrap.servers": server.bootstrap,
            "group.id": "judge",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            "log_level": 0,
        }
    )
    reader.assign([TopicPartition(topic, index, 0)])
    found: list[Message] = []
    while (message := reader.poll(SECONDS_MAX)) is not None and message.error() is None:
        found.append(message)
    reader.close()
    assert message is not None, f"neither records nor the end after {SECONDS_MAX:g} s"
    assert (error := message.error()) is not None
    assert error.code() == KafkaError._PARTITION_EOF, error
    return found
