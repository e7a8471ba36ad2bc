"""Topics created, enlarged and deleted: what the quota controller_mutation_rate counts (KIP-599)."""

from collections.abc import Sequence
from typing import Any

from kafka.protocol.admin import CreatePartitionsRequest, CreateTopicsRequest, DeleteTopicsRequest

from kavka_operator.domain.plan import AddPartitions, CreateTopic, DeleteTopic
from kavka_operator.kafka.connection import REQUEST_TIMEOUT_MS
from kavka_operator.kafka.errors import raise_for
from kavka_operator.kafka.mutations import Send
from kavka_operator.kafka.topic_ids import uuid_of


def create(send: Send, action: CreateTopic, *, validate_only: bool = False) -> None:
    """Create a topic. Raises KafkaError."""
    (answer,) = created(send, [action], validate_only=validate_only)
    raise_for(answer.error_code, answer.error_message)


def created(send: Send, actions: Sequence[CreateTopic], *, validate_only: bool = False) -> list[Any]:
    """The answers of CreateTopics, in the order of the actions."""
    if not actions:
        return []
    request = CreateTopicsRequest(
        topics=list(map(_creatable, actions)), timeout_ms=REQUEST_TIMEOUT_MS, validate_only=validate_only
    )
    answers = {answer.name: answer for answer in send(request).topics}
    return [answers[action.name] for action in actions]


def add_partitions(send: Send, action: AddPartitions, *, validate_only: bool = False) -> None:
    """Add partitions to a topic. Raises KafkaError."""
    topic = CreatePartitionsRequest.CreatePartitionsTopic(name=action.name, count=action.total, assignments=None)
    request = CreatePartitionsRequest(topics=[topic], timeout_ms=REQUEST_TIMEOUT_MS, validate_only=validate_only)
    (result,) = send(request).results
    raise_for(result.error_code, result.error_message)


def delete(send: Send, action: DeleteTopic) -> None:
    """Delete a topic, by its id. Raises KafkaError."""
    topic = DeleteTopicsRequest.DeleteTopicState(name=None, topic_id=uuid_of(action.topic_id))
    (result,) = send(DeleteTopicsRequest(topics=[topic], timeout_ms=REQUEST_TIMEOUT_MS)).responses
    raise_for(result.error_code, result.error_message)


def _creatable(action: CreateTopic) -> Any:
    kind = CreateTopicsRequest.CreatableTopic
    return kind(
        name=action.name,
        num_partitions=action.partitions or -1,
        replication_factor=action.replication_factor or -1,
        assignments=[],
        configs=[kind.CreatableTopicConfig(name=name, value=value) for name, value in action.config.items()],
    )
