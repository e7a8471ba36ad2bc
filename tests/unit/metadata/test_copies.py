"""An image and its copy share what neither has changed since: to copy takes a fraction of what it takes to make."""

import gc
import sys
from collections.abc import Callable
from types import FrameType

import pytest

from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.core.metadata.image.replay_steps import steps_of
from kavka_broker.core.metadata.image.topics import PartitionState
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.metadata.clear_elr_record import ClearElrRecord
from kavka_broker.protocol.messages.metadata.config_record import ConfigRecord
from kavka_broker.protocol.messages.metadata.delegation_token_record import DelegationTokenRecord
from kavka_broker.protocol.messages.metadata.partition_change_record import PartitionChangeRecord
from kavka_broker.protocol.messages.metadata.register_controller_record import RegisterControllerRecord
from kavka_broker.protocol.messages.metadata.remove_topic_record import RemoveTopicRecord
from kavka_broker.protocol.messages.metadata.remove_user_scram_credential_record import (
    RemoveUserScramCredentialRecord,
)
from kavka_broker.protocol.messages.metadata.topic_record import TopicRecord
from kavka_broker.protocol.messages.metadata.user_scram_credential_record import UserScramCredentialRecord

TOPIC = 2
A, B = b"a" * 16, b"b" * 16


def partition(topic_id: bytes, index: int, elr: tuple[int, ...] = ()) -> Message:
    return PartitionState((1, 2), (1,), 1, elr=elr).record(topic_id, index)


def image_of(*records: Message) -> Metadata:
    image = Metadata()
    for record in records:
        image.replay(record)
    return image


def two_topics() -> Metadata:
    return image_of(
        TopicRecord("b", B),
        partition(B, 0, elr=(2,)),
        TopicRecord("a", A),
        partition(A, 0),
        partition(A, 1),
        ConfigRecord(TOPIC, "a", "retention.ms", "1"),
    )


CHANGES: list[Message] = [
    TopicRecord("c", b"c" * 16),
    TopicRecord("a_", b"d" * 16),
    partition(A, 2),
    PartitionChangeRecord(partition_id=1, topic_id=A, leader=2),
    RemoveTopicRecord(A),
    ClearElrRecord(""),
    ConfigRecord(TOPIC, "a", "retention.ms", "2"),
    ConfigRecord(TOPIC, "a", "retention.ms", None),
    ConfigRecord(TOPIC, "a", "segment.ms", "2"),
    ConfigRecord(TOPIC, "b", "segment.ms", "2"),
]


@pytest.mark.parametrize("change", CHANGES, ids=str)
@pytest.mark.parametrize("is_of_the_copy", [False, True])
def test_a_change_of_one_is_none_of_the_other(change: Message, is_of_the_copy: bool) -> None:
    image = two_topics()
    copy = image.copy()
    changed, other = (copy, image) if is_of_the_copy else (image, copy)
    changed.replay(change)
    assert other == two_topics()
    assert other.topics.colliding("c") is other.topics.colliding("a.") is None
    assert other.topics.partition_count == 3
    expected = two_topics()
    expected.replay(change)
    assert changed == expected
    assert changed.topics.partition_count == expected.topics.partition_count
    changed.replay(TopicRecord("z", b"z" * 16))  # and again, of what is its own by now
    assert other == two_topics()


def test_a_copy_of_a_copy_shares_with_both() -> None:
    image = two_topics()
    copies = [image.copy(), image.copy(), image.copy().copy()]
    image.replay(PartitionChangeRecord(partition_id=0, topic_id=A, leader=2))
    copies[0].replay(RemoveTopicRecord(A))
    assert copies[1] == copies[2] == two_topics()


def test_a_topic_of_the_other_image_stays_as_it_was() -> None:
    image = two_topics()
    copy = image.copy()
    held = copy.topics.by_id(A)
    assert held is not None
    before = dict(held.partitions)
    image.replay(PartitionChangeRecord(partition_id=0, topic_id=A, leader=2))
    assert (held.partitions, copy.topics.by_id(A)) == (before, held)


@pytest.mark.parametrize("is_in_steps", [False, True])
def test_a_copy_has_topics_by_name_and_partitions_by_index(is_in_steps: bool) -> None:
    """A leader decides alike whether its image comes from a snapshot or from the log."""
    image = image_of(TopicRecord("b", B), partition(B, 1))
    more = [*(partition(B, index) for index in (2, 0, 1)), TopicRecord("a", A)]
    image.replay_steps(steps_of(more) if is_in_steps else more)
    copy = image.copy()
    assert [topic.name for topic in copy.topics] == ["a", "b"]
    topic = copy.topics.get("b")
    assert topic is not None
    assert list(topic.partitions) == [0, 1, 2]
    copy.replay(partition(B, 1))
    assert list(topic.partitions) == [0, 1, 2]
    assert copy == image


def test_names_stand_in_order_whatever_comes_and_goes() -> None:
    image = image_of(*(TopicRecord(name, name.encode() * 16) for name in "cab"))
    assert image.topics.names() == ["a", "b", "c"]
    image.replay(RemoveTopicRecord(b"b" * 16))
    assert image.topics.names() == ["a", "c"]


def calls_of(work: Callable[[], object]) -> int:
    calls = 0

    def called(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    gc.disable()  # what other tests have left behind is called when it is collected
    sys.setprofile(called)
    try:
        work()
    finally:
        sys.setprofile(None)
        gc.enable()
    return calls


def test_to_copy_more_topics_takes_no_more_calls() -> None:
    """10,000 took 30 ms, made one by one."""

    def copying(count: int) -> int:
        image = Metadata()
        for number in range(count):
            topic_id = number.to_bytes(16, "big")
            image.replay(TopicRecord(f"t{number}", topic_id))
            image.replay(partition(topic_id, 0))
            image.replay(ConfigRecord(TOPIC, f"t{number}", "retention.ms", "1"))
        return calls_of(image.copy)

    assert copying(100) == copying(10)


def test_a_copy_has_the_controllers_credentials_and_tokens_too() -> None:
    controller = RegisterControllerRecord(controller_id=7, incarnation_id=b"i" * 16)
    token = DelegationTokenRecord(token_id="t", owner="User:a")
    image = image_of(controller, UserScramCredentialRecord("alice", 1, b"salt", b"stored", b"server", 4096), token)
    copy = image.copy()
    assert list(copy.records()) == list(image.records())
    assert copy == image
    assert {RegisterControllerRecord, UserScramCredentialRecord, DelegationTokenRecord} <= set(
        map(type, copy.records())
    )
    copy.replay(RemoveUserScramCredentialRecord("alice", 1))
    assert copy != image
    assert (copy.credentials == image.credentials, image.credentials == object()) == (False, False)
