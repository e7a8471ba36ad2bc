"""Who may register, and what becomes of the incarnation before."""

from dataclasses import replace

import pytest

from kavka_broker.core.metadata.decide.heartbeats import fence, leave
from kavka_broker.core.metadata.decide.registrations import Presence, register, register_controller, unregister
from kavka_broker.core.metadata.image.features import METADATA_VERSION
from kavka_broker.core.metadata.image.topics import NO_LEADER
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.metadata.feature_level_record import FeatureLevelRecord
from kavka_broker.protocol.messages.metadata.register_broker_record import RegisterBrokerRecord
from kavka_broker.protocol.messages.metadata.register_controller_record import (
    ControllerFeature,
    RegisterControllerRecord,
)
from kavka_broker.protocol.messages.metadata.unregister_broker_record import UnregisterBrokerRecord
from kavka_broker.protocol.uuids import ONE
from tests.support.brokers import changes, epoch_of, replicated, state, told
from tests.support.cluster import cluster, directory_of, enact, introduction, join, uuid


def test_a_registration_begins_fenced_at_the_offset_of_its_record() -> None:
    metadata = cluster(1)
    decision = register(metadata, introduction(2, rack="a"))
    (record,) = decision.records
    assert isinstance(record, RegisterBrokerRecord)
    assert (record.broker_id, record.broker_epoch, record.fenced, record.rack) == (2, metadata.next_offset, True, "a")
    assert decision.response == metadata.next_offset


def test_the_same_incarnation_keeps_its_epoch_and_standing() -> None:
    # An answer was lost on the way, and the broker asks again.
    metadata = cluster(1)
    decision = register(metadata, introduction(1))
    assert (decision.records, decision.response) == ([], epoch_of(metadata, 1))
    more = replace(introduction(1), rack="elsewhere")
    (record,) = register(metadata, more).records
    assert isinstance(record, RegisterBrokerRecord)
    assert (record.broker_epoch, record.fenced, record.rack) == (epoch_of(metadata, 1), False, "elsewhere")


def test_a_second_process_is_refused_while_the_first_is_unfenced() -> None:
    metadata = cluster(1)
    other = replace(introduction(1, incarnation=1), directories=(uuid(77),))
    with pytest.raises(BrokerError, match="broker 1 runs already") as refusal:
        register(metadata, other)
    assert refusal.value.code is ErrorCode.DUPLICATE_BROKER_REGISTRATION
    enact(metadata, leave(metadata, 1))
    assert enact(metadata, register(metadata, other)) == epoch_of(metadata, 1)


def test_a_second_process_is_refused_while_the_first_catches_up() -> None:
    # Two brokers with one id that start at the same time: one of them has to hear of it, and not the first.
    metadata = cluster(1)
    enact(metadata, leave(metadata, 1))
    other = replace(introduction(1, incarnation=1), directories=(uuid(77),))
    with pytest.raises(BrokerError, match="broker 1 runs already") as refusal:
        register(metadata, other, present=Presence.HEARD)
    assert refusal.value.code is ErrorCode.DUPLICATE_BROKER_REGISTRATION
    assert register(metadata, introduction(1, incarnation=1), present=Presence.HEARD).records


@pytest.mark.parametrize("fenced", [False, True])
def test_a_late_registration_does_not_replace_a_broker_that_is_connected(fenced: bool) -> None:
    # The network delivers what a process sent long after it was killed, and its successor serves already.
    metadata = cluster(1)
    if fenced:
        enact(metadata, leave(metadata, 1))
    with pytest.raises(BrokerError, match=r"runs already.* the same directories") as refusal:
        register(metadata, introduction(1, incarnation=1), present=Presence.CONNECTED)
    assert refusal.value.code is ErrorCode.DUPLICATE_BROKER_REGISTRATION
    again = register(metadata, introduction(1), present=Presence.CONNECTED)
    assert again.response == epoch_of(metadata, 1)


def test_the_same_directory_proves_that_the_first_process_is_gone() -> None:
    metadata = cluster(1)
    first = epoch_of(metadata, 1)
    assert enact(metadata, register(metadata, introduction(1, incarnation=1))) > first
    registration = metadata.brokers.get(1)
    assert registration is not None
    assert registration.fenced


@pytest.mark.parametrize(
    ("directories", "problem"),
    [
        ((), "names no log directory"),
        ((uuid(5), uuid(5)), "twice"),
        ((ONE,), "reserved"),
        ((directory_of(2),), "belongs to broker 2"),
    ],
)
def test_wrong_directories_are_refused(directories: tuple[bytes, ...], problem: str) -> None:
    metadata = cluster(2)
    with pytest.raises(BrokerError, match=problem) as refusal:
        register(metadata, replace(introduction(1), directories=directories))
    assert refusal.value.code is ErrorCode.INVALID_REGISTRATION


def test_a_broker_must_know_the_features_that_the_cluster_uses() -> None:
    metadata = cluster(1)
    metadata.replay(FeatureLevelRecord("group.version", 1))
    with pytest.raises(BrokerError, match=r"group\.version 1; broker 2 supports 0 to 0") as refusal:
        register(metadata, replace(introduction(2), features={}))
    assert refusal.value.code is ErrorCode.UNSUPPORTED_VERSION
    join(metadata, 2)


def test_a_clean_restart_leaves_the_broker_eligible() -> None:
    metadata = replicated(1, 2, 3)
    for broker_id in (3, 2):
        enact(metadata, leave(metadata, broker_id))
    assert (state(metadata).isr, state(metadata).elr) == ((1,), (2,))
    epoch = epoch_of(metadata, 2)
    enact(metadata, register(metadata, introduction(2, incarnation=1, previous_epoch=epoch)))
    assert state(metadata).elr == (2,)


def test_a_clean_restart_without_its_directory_does_not() -> None:
    metadata = replicated(1, 2, 3)
    for broker_id in (3, 2):
        enact(metadata, leave(metadata, broker_id))
    again = replace(
        introduction(2, incarnation=1, previous_epoch=epoch_of(metadata, 2)), directories=(uuid(66), uuid(67))
    )
    enact(metadata, register(metadata, again))
    assert (state(metadata).isr, state(metadata).elr) == ((1,), ())


def test_an_unclean_restart_does_not() -> None:
    metadata = replicated(1, 2, 3)
    for broker_id in (3, 2):
        enact(metadata, leave(metadata, broker_id))
    enact(metadata, register(metadata, introduction(2, incarnation=1, previous_epoch=epoch_of(metadata, 2) - 1)))
    assert state(metadata).elr == ()


def test_an_unnoticed_unclean_restart_takes_the_broker_out_of_sync() -> None:
    metadata = replicated(1, 2, 3)
    enact(metadata, register(metadata, introduction(1, incarnation=1)))
    after = state(metadata)
    assert (after.leader, after.isr, after.elr) == (2, (2, 3), ())


def test_the_last_one_in_sync_after_an_unclean_restart_leads_only_as_the_last_known() -> None:
    metadata = replicated(1, min_insync=1)
    enact(metadata, register(metadata, introduction(1, incarnation=1)))
    lost = state(metadata)
    assert (lost.isr, lost.elr, lost.leader, lost.last_known_elr) == ((), (), NO_LEADER, (1,))
    told(metadata, 1)
    after = state(metadata)
    assert (after.isr, after.leader, after.last_known_elr, after.recovery_state) == ((1,), 1, (), 1)


def test_the_last_one_in_sync_after_a_clean_stop_leads_as_ever() -> None:
    metadata = replicated(1, min_insync=1)
    enact(metadata, leave(metadata, 1))
    epoch = epoch_of(metadata, 1)
    enact(metadata, register(metadata, introduction(1, incarnation=1, previous_epoch=epoch)))
    told(metadata, 1)
    assert (state(metadata).isr, state(metadata).leader, state(metadata).recovery_state) == ((1,), 1, 0)


def test_before_eligible_replicas_a_crash_is_a_fencing() -> None:
    metadata = replicated(1, 2)
    metadata.replay(FeatureLevelRecord("eligible.leader.replicas.version", 0))
    enact(metadata, leave(metadata, 2))
    enact(metadata, register(metadata, introduction(1, incarnation=1)))
    assert (state(metadata).isr, state(metadata).leader) == ((1,), NO_LEADER)


def test_a_broker_that_is_unregistered_leads_nothing_and_is_not_eligible() -> None:
    metadata = replicated(1, 2, 3)
    enact(metadata, leave(metadata, 3))
    enact(metadata, leave(metadata, 2))
    decision = unregister(metadata, 2)
    (change,) = changes(decision.records)
    assert change.eligible_leader_replicas == []
    assert decision.records[-1] == UnregisterBrokerRecord(2, epoch_of(metadata, 2))
    enact(metadata, decision)
    assert metadata.brokers.get(2) is None
    assert state(metadata).replicas == (1, 2, 3)
    with pytest.raises(BrokerError) as refusal:
        unregister(metadata, 2)
    assert refusal.value.code is ErrorCode.BROKER_ID_NOT_REGISTERED


def test_fencing_is_for_one_incarnation() -> None:
    metadata = replicated(1, 2)
    former = epoch_of(metadata, 1)
    join(metadata, 1, incarnation=1)
    assert fence(metadata, 1, former).records == []
    assert fence(metadata, 9, 0).records == []
    assert enact(metadata, fence(metadata, 1, epoch_of(metadata, 1))) is True
    assert fence(metadata, 1, epoch_of(metadata, 1)).records == []


def test_controllers_say_themselves_once() -> None:
    metadata = cluster()
    record = RegisterControllerRecord(7, uuid(7), features=[ControllerFeature("group.version", 0, 1)])
    enact(metadata, register_controller(metadata, record))
    assert register_controller(metadata, record).records == []
    for level in (0, 1):
        metadata.replay(FeatureLevelRecord("group.version", level))
        assert register_controller(metadata, record).records == []
    metadata.replay(FeatureLevelRecord("group.version", 2))
    with pytest.raises(BrokerError, match="controller 7 supports 0 to 1"):
        register_controller(metadata, record)


def test_a_broker_that_is_too_new_says_how_to_raise_the_cluster() -> None:
    metadata = cluster(1)
    metadata.replay(FeatureLevelRecord(METADATA_VERSION, 21))
    newer = replace(introduction(2), features={METADATA_VERSION: (25, 30)})
    with pytest.raises(BrokerError, match=r"broker 2 supports 25 to 30; raise it: .* --release-version 4\.0"):
        register(metadata, newer)
    metadata.replay(FeatureLevelRecord(METADATA_VERSION, 30))
    older = replace(introduction(2), features={METADATA_VERSION: (21, 29)})
    with pytest.raises(BrokerError, match=r"broker 2 supports 21 to 29$"):
        register(metadata, older)
    metadata.replay(FeatureLevelRecord(METADATA_VERSION, 25))
    for least, most in ((25, 30), (21, 25)):
        assert register(metadata, replace(introduction(2), features={METADATA_VERSION: (least, most)})).records


def test_a_broker_need_not_name_the_level_of_the_quorum() -> None:
    metadata = cluster(1)
    metadata.replay(FeatureLevelRecord("kraft.version", 1))
    named = dict(introduction(2).features)
    named.pop("kraft.version", None)
    assert register(metadata, replace(introduction(2), features=named)).records
    metadata.replay(FeatureLevelRecord("group.version", 1))
    named.pop("group.version", None)
    with pytest.raises(BrokerError, match=r"group\.version"):
        register(metadata, replace(introduction(2), features=named))


def test_what_leaves_is_the_incarnation_that_is_registered() -> None:
    metadata = cluster(1)
    with pytest.raises(AssertionError):
        metadata.brokers.replay(UnregisterBrokerRecord(1, epoch_of(metadata, 1) + 1))
    metadata.brokers.replay(UnregisterBrokerRecord(1, epoch_of(metadata, 1)))
    assert metadata.brokers.get(1) is None
