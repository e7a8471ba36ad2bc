"""What the rules assert of themselves: a defect of ours is found where it is made."""

from collections.abc import Callable

import pytest

from kavka_broker.core.group.effects import Effects
from kavka_broker.core.group.rebalance import drop
from kavka_broker.core.group.state import ClassicGroup, Member
from kavka_broker.core.metadata.image.features import Features
from kavka_broker.core.metadata.image.topics import Topic, Topics
from kavka_broker.core.partition.leader_epochs import LeaderEpochs
from kavka_broker.core.partition.producer_state import Producer, ProducerStates
from kavka_broker.core.quota.allowance import Allowance
from kavka_broker.core.raft.voter_history import VoterHistory
from kavka_broker.protocol.messages.metadata.feature_level_record import FeatureLevelRecord
from kavka_broker.protocol.messages.metadata.partition_record import PartitionRecord
from kavka_broker.protocol.messages.metadata.topic_record import TopicRecord

TOPIC_ID = b"t" * 16


def member() -> Member:
    return Member("m", None, "c", "h", 1000, 1000, (("range", b""),))


def drop_a_former_member() -> None:
    group = ClassicGroup("g")
    group.add(member())
    drop(group, member(), Effects())


def change_a_topic_of_two_names() -> None:
    topics = Topics()
    topics.replay(TopicRecord("t", TOPIC_ID))
    topics._by_name["t"] = Topic("t", TOPIC_ID)
    topics.replay(PartitionRecord(0, TOPIC_ID, [1], [1]))


def go_back_to_former_features() -> None:
    features = Features()
    features.replay(FeatureLevelRecord("group.version", 1), 7)
    features.replay(FeatureLevelRecord("group.version", 0), 6)


def take_over_epochs_without_records() -> None:
    others = LeaderEpochs([(1, 0)])
    others.begun = 2
    LeaderEpochs().take_over(others)


def forget_a_producer_in_a_transaction() -> None:
    states = ProducerStates()
    states.replace([(1, Producer(0, 0, transaction_first_offset=5))])
    states._producers[1].transaction_first_offset = -1
    states.expire(1000, 10)


def go_back_to_a_former_version() -> None:
    history = VoterHistory.of((), kraft_version=0)
    history.add_version(7, 1)
    history.add_version(6, 0)


DEFECTS: dict[str, Callable[[], object]] = {
    "bytes that are given back": lambda: Allowance(1000, 0).spend(-1, 0, 10),
    "a limit below 0": lambda: Allowance(1000, 0).advance(10, -1),
    "a debt that is paid before it is made": lambda: Allowance(1000, 0).forgive(-1, 0, 10),
    "a member that is no member any more": drop_a_former_member,
    "a topic that is another by its name": change_a_topic_of_two_names,
    "features of long ago": go_back_to_former_features,
    "an epoch with records that never began": take_over_epochs_without_records,
    "a transaction of a producer that is forgotten": forget_a_producer_in_a_transaction,
    "a level of kraft.version of long ago": go_back_to_a_former_version,
}


@pytest.mark.parametrize("what", DEFECTS)
def test_a_defect_is_found_where_it_is_made(what: str) -> None:
    with pytest.raises(AssertionError):
        DEFECTS[what]()
