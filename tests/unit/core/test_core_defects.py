"""What the rules assert of themselves: a defect of ours is found where it is made."""

from collections.abc import Callable

import pytest

from kavka_broker.core.group.effects import Effects
from kavka_broker.core.group.rebalance import drop
from kavka_broker.core.group.state import ClassicGroup, Member
from kavka_broker.core.metadata.image.features import Features
from kavka_broker.core.partition.leader_epochs import LeaderEpochs
from kavka_broker.core.quota.allowance import Allowance
from kavka_broker.core.raft.voter_history import VoterHistory
from kavka_broker.protocol.messages.metadata.feature_level_record import FeatureLevelRecord

TOPIC_ID = b"t" * 16


def member() -> Member:
    return Member("m", None, "c", "h", 1000, 1000, (("range", b""),))


def drop_a_former_member() -> None:
    group = ClassicGroup("g")
    group.add(member())
    drop(group, member(), Effects())


def go_back_to_former_features() -> None:
    features = Features()
    features.replay(FeatureLevelRecord("group.version", 1), 7)
    features.replay(FeatureLevelRecord("group.version", 0), 6)


def take_over_epochs_without_records() -> None:
    others = LeaderEpochs([(1, 0)])
    others.begun = 2
    LeaderEpochs().take_over(others)


def go_back_to_a_former_version() -> None:
    history = VoterHistory.of((), kraft_version=0)
    history.add_version(7, 1)
    history.add_version(6, 0)


DEFECTS: dict[str, Callable[[], object]] = {
    "bytes that are given back": lambda: Allowance(1000, 0).spend(-1, 0, 10),
    "a limit below 0": lambda: Allowance(1000, 0).advance(10, -1),
    "a debt that is paid before it is made": lambda: Allowance(1000, 0).forgive(-1, 0, 10),
    "a member that is no member any more": drop_a_former_member,
    "features of long ago": go_back_to_former_features,
    "an epoch with records that never began": take_over_epochs_without_records,
    "a level of kraft.version of long ago": go_back_to_a_former_version,
}


@pytest.mark.parametrize("what", DEFECTS)
def test_a_defect_is_found_where_it_is_made(what: str) -> None:
    with pytest.raises(AssertionError):
        DEFECTS[what]()
