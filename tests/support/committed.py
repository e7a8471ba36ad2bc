"""Offsets that a group has committed, as its coordinator says."""

from collections.abc import Sequence
from typing import Final

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from tests.support.waiting import SECONDS_MAX, until_outside

#: What a broker that has just started answers: it leads nothing yet, or has not read what it leads.
NOT_YET: Final = (
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
)


def committed(consumer: confluent_kafka.Consumer, partitions: Sequence[TopicPartition]) -> list[TopicPartition]:
    """Ask again while the coordinator is not there yet: librdkafka gives up where a broker does not coordinate yet."""
    found: list[TopicPartition] = []

    def is_told() -> bool:
        try:
            found[:] = consumer.committed([*partitions], SECONDS_MAX)
        except KafkaException as problem:
            if problem.args[0].code() not in NOT_YET:
                raise
            return False
        return True

    until_outside(is_told, what="the coordinator answers")
    return found
