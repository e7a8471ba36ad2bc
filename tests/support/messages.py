"""What a message of librdkafka holds once it was delivered or read: its types allow None everywhere."""

import confluent_kafka


def place_of(message: confluent_kafka.Message) -> tuple[int, int]:
    """Partition and offset."""
    partition, offset = message.partition(), message.offset()
    assert partition is not None
    assert offset is not None
    return partition, offset


def value_of(message: confluent_kafka.Message) -> bytes:
    """The value of a record that has one."""
    value = message.value()
    assert isinstance(value, bytes)
    return value


def pair_of(message: confluent_kafka.Message) -> tuple[str, str]:
    """Key and value of a record that has both."""
    key = message.key()
    assert isinstance(key, bytes)
    return key.decode(), value_of(message).decode()


def polled(consumer: confluent_kafka.Consumer, seconds_max: float) -> confluent_kafka.Message:
    """The next record, which must come in time."""
    message = consumer.poll(seconds_max)
    assert message is not None, f"nothing came in {seconds_max} s"
    assert message.error() is None
    return message
