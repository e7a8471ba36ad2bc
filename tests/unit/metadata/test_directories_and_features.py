"""Where replicas are, by their broker's word; what the cluster has agreed to use; one bound on replicas in sync."""

from collections.abc import Sequence

import pytest

from kavka_broker.core.decision import Decision
from kavka_broker.core.metadata.decide.configs import Change, Operation, alter_configs
from kavka_broker.core.metadata.decide.directories import Assign, assign_directories
from kavka_broker.core.metadata.decide.election_policy import MIN_INSYNC, Policy
from kavka_broker.core.metadata.decide.features import Direction, UpdateFeature, update_features
from kavka_broker.core.metadata.decide.heartbeats import leave
from kavka_broker.core.metadata.image.brokers import GIVEN_UP, LOST_DIRECTORY, UNASSIGNED_DIRECTORY, UNMADE_DIRECTORY
from kavka_broker.core.metadata.image.configs import Resource, ResourceType
from kavka_broker.core.metadata.image.features import ELR_FEATURE, METADATA_VERSION
from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.core.metadata.image.topics import NO_LEADER, PartitionState
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.metadata.clear_elr_record import ClearElrRecord
from kavka_broker.protocol.messages.metadata.config_record import ConfigRecord
from kavka_broker.protocol.messages.metadata.feature_level_record import FeatureLevelRecord
from kavka_broker.protocol.messages.metadata.partition_change_record import PartitionChangeRecord
from kavka_broker.protocol.messages.metadata.register_controller_record import RegisterControllerRecord
from tests.support.brokers import TOPIC_ID, epoch_of, propose, replicated, state, told
from tests.support.cluster import cluster, directory_of, enact, uuid

TOPIC = Resource(ResourceType.TOPIC, "t")
ALL_BROKERS = Resource(ResourceType.BROKER, "")


def assigned(metadata: Metadata, broker_id: int, *commands: Assign) -> list[ErrorCode]:
    return enact(metadata, assign_directories(metadata, broker_id, epoch_of(metadata, broker_id), commands))


def test_a_broker_says_where_its_replica_is() -> None:
    metadata = replicated(1, 2)
    before = state(metadata)
    metadata.replay(before._replace(directories=(directory_of(1), UNASSIGNED_DIRECTORY)).record(TOPIC_ID, 0))
    decision = assign_directories(metadata, 2, epoch_of(metadata, 2), [Assign(TOPIC_ID, 0, directory_of(2))])
    assert decision.records == [PartitionChangeRecord(0, TOPIC_ID, directories=[directory_of(1), directory_of(2)])]
    enact(metadata, decision)
    assert assign_directories(metadata, 2, epoch_of(metadata, 2), [Assign(TOPIC_ID, 0, directory_of(2))]).records == []


@pytest.mark.parametrize(("directory", "elr"), [(uuid(99), (1,)), (LOST_DIRECTORY, ()), (UNMADE_DIRECTORY, ())])
def test_a_replica_in_a_directory_that_is_not_online_is_out_of_sync(directory: bytes, elr: tuple[int, ...]) -> None:
    """What is in a directory may come back with it. What its broker gives for lost counts for nothing."""
    metadata = replicated(1, 2)
    assert assigned(metadata, 1, Assign(TOPIC_ID, 0, directory)) == [ErrorCode.NONE]
    after = state(metadata)
    assert (after.leader, after.isr, after.elr, after.directories[0]) == (2, (2,), elr, directory)


def test_a_replica_with_an_empty_log_is_not_eligible() -> None:
    metadata = replicated(1, 2)
    assigned(metadata, 1, Assign(TOPIC_ID, 0, uuid(99)))
    assert state(metadata).elr == (1,)
    epoch = state(metadata).leader_epoch
    assigned(metadata, 1, Assign(TOPIC_ID, 0, directory_of(1)))
    assert (state(metadata).isr, state(metadata).elr) == ((2,), ())
    # What the leader knows of the former log must not be taken for the new one's.
    assert (state(metadata).leader, state(metadata).leader_epoch) == (2, epoch + 1)
    assert isinstance(propose(metadata, 2, 1), PartitionState)


def test_a_replica_with_an_empty_log_is_not_the_last_leader() -> None:
    """It would be elected where no replica is eligible, and its followers would cut off records that they have."""
    metadata = replicated(1, 2)
    down = state(metadata)._replace(isr=(), elr=(), leader=NO_LEADER, last_known_elr=(1,))
    metadata.replay(down._replace(directories=(uuid(99), directory_of(2))).record(TOPIC_ID, 0))
    assigned(metadata, 1, Assign(TOPIC_ID, 0, directory_of(1)))
    after = state(metadata)
    assert (after.leader, after.isr, after.last_known_elr) == (NO_LEADER, (), ())


@pytest.mark.parametrize("directory", GIVEN_UP)
def test_a_log_that_was_given_for_lost_and_is_there_again_leads_as_the_last_that_led(directory: bytes) -> None:
    metadata = replicated(1, 2)
    down = state(metadata)._replace(isr=(), elr=(), leader=NO_LEADER, last_known_elr=(1,))
    metadata.replay(down._replace(directories=(directory, directory_of(2))).record(TOPIC_ID, 0))
    assigned(metadata, 1, Assign(TOPIC_ID, 0, directory_of(1)))
    assert state(metadata).leader == 1


def test_a_log_that_is_given_for_lost_after_its_directory_failed_is_the_one_to_wait_for() -> None:
    """Or a partition of one replica has no leader for good, though its log comes back with the directory."""
    metadata = replicated(1, 2)
    down = state(metadata)._replace(isr=(), elr=(), leader=NO_LEADER, last_known_elr=(1,))
    metadata.replay(down._replace(directories=(uuid(99), directory_of(2))).record(TOPIC_ID, 0))
    assigned(metadata, 1, Assign(TOPIC_ID, 0, LOST_DIRECTORY))
    assert state(metadata).last_known_elr == (1,)
    assigned(metadata, 1, Assign(TOPIC_ID, 0, directory_of(1)))
    assert state(metadata).leader == 1


def test_a_replica_that_is_given_for_lost_is_not_eligible_while_its_directory_is_thought_to_be_there() -> None:
    """Its broker is about to begin again, and the controller has not heard that the directory failed."""
    metadata = replicated(1, 2)
    metadata.replay(state(metadata)._replace(isr=(2,), elr=(1,), leader=2).record(TOPIC_ID, 0))
    assigned(metadata, 1, Assign(TOPIC_ID, 0, LOST_DIRECTORY))
    assigned(metadata, 1, Assign(TOPIC_ID, 0, directory_of(1)))
    assert (state(metadata).isr, state(metadata).elr) == ((2,), ())


def test_a_replica_that_has_moved_is_still_the_last_that_led() -> None:
    metadata = replicated(1, 2)
    down = state(metadata)._replace(isr=(), elr=(2,), leader=NO_LEADER, last_known_elr=(1,))
    metadata.replay(down._replace(directories=(directory_of(1), uuid(99))).record(TOPIC_ID, 0))
    assigned(metadata, 1, Assign(TOPIC_ID, 0, directory_of(1)))
    assert state(metadata).last_known_elr == (1,)


def test_a_member_without_its_directory_is_ineligible() -> None:
    metadata = replicated(1, 2)
    assigned(metadata, 1, Assign(TOPIC_ID, 0, uuid(99)))
    assert propose(metadata, 2, 1) is ErrorCode.INELIGIBLE_REPLICA


def test_what_stands_against_an_assignment() -> None:
    metadata = replicated(1, 2, others=(3,))
    wrong = [Assign(uuid(9), 0, uuid(5)), Assign(TOPIC_ID, 7, uuid(5)), Assign(TOPIC_ID, 0, uuid(5))]
    assert assigned(metadata, 3, *wrong) == [
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ]
    with pytest.raises(BrokerError) as refusal:
        assign_directories(metadata, 1, epoch_of(metadata, 1) + 1, [])
    assert refusal.value.code is ErrorCode.STALE_BROKER_EPOCH


def test_the_last_word_on_a_replica_counts() -> None:
    metadata = replicated(1, 2)
    assigned(metadata, 1, Assign(TOPIC_ID, 0, uuid(99)), Assign(TOPIC_ID, 0, directory_of(1)))
    assert state(metadata).isr == (1, 2)


def test_a_level_is_raised_and_lowered() -> None:
    metadata = cluster(1)
    assert enact(metadata, update_features(metadata, [UpdateFeature("group.version", 1)])) is None
    assert metadata.features.level("group.version") == 1
    assert update_features(metadata, [UpdateFeature("group.version", 1)]).records == []
    lower = UpdateFeature("group.version", 0, Direction.SAFE_DOWNGRADE)
    assert update_features(metadata, [lower]).records == [FeatureLevelRecord("group.version", 0)]


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        (UpdateFeature("share.version", 0), "ask for a downgrade"),
        (UpdateFeature("group.version", 1, Direction.SAFE_DOWNGRADE), "cannot raise"),
        (UpdateFeature("group.version", 1, 9), "not a kind of change"),
        (UpdateFeature("group.version", 7), "this controller supports 0 to 1"),
        (UpdateFeature("no.such", 1), "this controller does not support this feature."),
        (UpdateFeature(METADATA_VERSION, 0, Direction.UNSAFE_DOWNGRADE), "its level is 30; what came with that"),
        (UpdateFeature(METADATA_VERSION, 29, Direction.SAFE_DOWNGRADE), "its level is 30; what came with that"),
        (UpdateFeature(METADATA_VERSION, 31), "this controller supports 21 to 30"),
        (UpdateFeature("kraft.version", 1), "formatted"),
        (UpdateFeature("transaction.version", 2), "broker 3 supports 0 to 1"),
    ],
)
def test_a_feature_level_that_cannot_be_is_refused(command: UpdateFeature, problem: str) -> None:
    metadata = cluster(1, 3)
    metadata.replay(FeatureLevelRecord("share.version", 1))
    metadata.replay(FeatureLevelRecord(METADATA_VERSION, 30))
    registration = metadata.brokers.get(3)
    assert registration is not None
    record = registration.record()
    for feature in record.features:
        if feature.name == "transaction.version":
            feature.max_supported_version = 1
    metadata.replay(record)
    with pytest.raises(BrokerError, match=problem) as refusal:
        update_features(metadata, [UpdateFeature("streams.version", 1), command])
    assert refusal.value.code is ErrorCode.INVALID_UPDATE_VERSION


def test_levels_rise_step_by_step_and_fall_where_nothing_is_lost() -> None:
    metadata = cluster(1)
    metadata.replay(FeatureLevelRecord(METADATA_VERSION, 21))
    with pytest.raises(BrokerError, match=r"needs metadata\.version 23 \(4\.0-IV1\)"):
        update_features(metadata, [UpdateFeature(ELR_FEATURE, 1)])
    for level in (22, 25, 29):
        enact(metadata, update_features(metadata, [UpdateFeature(METADATA_VERSION, level)]))
    for level, is_lost in ((23, False), (22, True)):
        lower = UpdateFeature(METADATA_VERSION, level, Direction.SAFE_DOWNGRADE)
        if is_lost:
            with pytest.raises(BrokerError, match="would be lost"):
                update_features(metadata, [lower])
        else:
            enact(metadata, update_features(metadata, [lower]))
    enact(metadata, update_features(metadata, [UpdateFeature(ELR_FEATURE, 1)]))


@pytest.mark.parametrize(("level", "cordoned"), [(29, ()), (30, (uuid(5),))])
def test_cordoned_directories_are_noted_from_their_level_on(level: int, cordoned: tuple[bytes, ...]) -> None:
    metadata = cluster(1)
    metadata.replay(FeatureLevelRecord(METADATA_VERSION, level))
    told(metadata, 1, cordoned_directories=(uuid(5),))
    registration = metadata.brokers.get(1)
    assert registration is not None
    assert registration.cordoned_directories == cordoned


def test_eligible_replicas_come_with_one_bound_for_all_brokers() -> None:
    metadata = cluster(1, 2)
    metadata.replay(ConfigRecord(ResourceType.BROKER, "1", MIN_INSYNC, "3"))
    decision = update_features(metadata, [UpdateFeature(ELR_FEATURE, 1)], Policy(min_insync=2))
    assert decision.records == [
        FeatureLevelRecord(ELR_FEATURE, 1),
        ConfigRecord(ResourceType.BROKER, "", MIN_INSYNC, "2"),
        ConfigRecord(ResourceType.BROKER, "1", MIN_INSYNC, None),
    ]


@pytest.mark.parametrize(("resource", "name"), [(TOPIC, "t"), (ALL_BROKERS, "")])
def test_another_bound_clears_the_eligible_replicas(resource: Resource, name: str) -> None:
    metadata = replicated(1, 2, 3)
    propose(metadata, 1)
    before = state(metadata)
    assert before.elr == (2, 3)
    decision = alter_configs(metadata, resource, [Change(MIN_INSYNC, Operation.SET, "1")])
    assert decision.records == [ConfigRecord(resource.type, name, MIN_INSYNC, "1"), ClearElrRecord("t")]
    enact(metadata, decision)
    assert state(metadata) == before._replace(elr=(), partition_epoch=before.partition_epoch + 1)


def test_a_bound_that_a_topic_has_already_keeps_the_eligible_replicas() -> None:
    metadata = replicated(1, 2, 3)
    enact(metadata, alter_configs(metadata, ALL_BROKERS, [Change(MIN_INSYNC, Operation.SET, "2")]))
    propose(metadata, 1)
    before = state(metadata)
    assert before.elr == (2, 3)
    for change in (Change(MIN_INSYNC, Operation.SET, "2"), Change(MIN_INSYNC, Operation.DELETE)):
        (record,) = enacted(metadata, alter_configs(metadata, TOPIC, [change]))
        assert isinstance(record, ConfigRecord)
        assert state(metadata) == before


@pytest.mark.parametrize("resource", [TOPIC, ALL_BROKERS])
@pytest.mark.parametrize("bound", ["1", "3"])
def test_another_bound_does_not_orphan_a_partition_that_is_down(resource: Resource, bound: str) -> None:
    metadata = replicated(1, 2, 3)
    for broker_id in (1, 2, 3):
        enact(metadata, leave(metadata, broker_id))
    before = state(metadata)
    assert (before.isr, before.elr) == ((), (2, 3))
    (record,) = enacted(metadata, alter_configs(metadata, resource, [Change(MIN_INSYNC, Operation.SET, bound)]))
    assert isinstance(record, ConfigRecord)
    assert state(metadata) == before
    told(metadata, 2)
    assert (state(metadata).leader, state(metadata).isr, state(metadata).recovery_state) == (2, (2,), 0)


def test_what_a_down_partition_keeps_another_one_of_its_topic_loses() -> None:
    metadata = replicated(1, 2, 3)
    for broker_id in (1, 2, 3):
        enact(metadata, leave(metadata, broker_id))
    topic = metadata.topics.get("t")
    assert topic is not None
    topic.partitions[1] = topic.partitions[0]._replace(isr=(1,), elr=(2, 3), leader=1)
    _, change = enacted(metadata, alter_configs(metadata, TOPIC, [Change(MIN_INSYNC, Operation.SET, "1")]))
    assert isinstance(change, PartitionChangeRecord)
    assert (change.partition_id, change.eligible_leader_replicas) == (1, [])
    assert (topic.partitions[0].elr, topic.partitions[1].elr) == ((2, 3), ())


def test_the_bound_of_all_brokers_is_nothing_to_a_topic_that_has_its_own() -> None:
    metadata = replicated(1, 2, 3, min_insync_replicas="2")
    propose(metadata, 1)
    enact(metadata, alter_configs(metadata, ALL_BROKERS, [Change(MIN_INSYNC, Operation.SET, "1")]))
    assert state(metadata).elr == (2, 3)


def test_the_same_bound_once_more_clears_nothing() -> None:
    metadata = replicated(1, 2, 3)
    propose(metadata, 1)
    assert alter_configs(metadata, ALL_BROKERS, [Change(MIN_INSYNC, Operation.SET, "2")]).records == []


def enacted(metadata: Metadata, decision: Decision[None]) -> Sequence[Message]:
    enact(metadata, decision)
    return decision.records


def test_another_bound_without_eligible_replicas_is_only_a_config() -> None:
    metadata = replicated(1, 2, 3)
    (record,) = alter_configs(metadata, TOPIC, [Change(MIN_INSYNC, Operation.SET, "3")]).records
    assert isinstance(record, ConfigRecord)


@pytest.mark.parametrize("value", ["0", "-1", "two"])
def test_a_bound_that_cannot_be(value: str) -> None:
    metadata = replicated(1, 2, 3)
    with pytest.raises(BrokerError) as refusal:
        alter_configs(metadata, TOPIC, [Change(MIN_INSYNC, Operation.SET, value)])
    assert refusal.value.code is ErrorCode.INVALID_CONFIG


def test_a_feature_is_named_once_in_a_request() -> None:
    twice = [UpdateFeature("group.version", 1), UpdateFeature("group.version", 1)]
    with pytest.raises(BrokerError, match="named twice") as refusal:
        update_features(cluster(1), twice)
    assert refusal.value.code is ErrorCode.INVALID_REQUEST


def test_a_feature_can_be_turned_off_whatever_a_broker_must_have() -> None:
    metadata = cluster(1)
    metadata.replay(FeatureLevelRecord("group.version", 1))
    registration = metadata.brokers.get(1)
    assert registration is not None
    record = registration.record()
    for feature in record.features:
        feature.min_supported_version = feature.max_supported_version = 1
    metadata.replay(record)
    off = UpdateFeature("group.version", 0, Direction.SAFE_DOWNGRADE)
    assert update_features(metadata, [off]).records == [FeatureLevelRecord("group.version", 0)]


def test_the_oldest_level_that_all_know_is_taken() -> None:
    assert update_features(cluster(1), [UpdateFeature(METADATA_VERSION, 21)]).records == [
        FeatureLevelRecord(METADATA_VERSION, 21)
    ]


def test_a_controller_that_does_not_know_a_feature_keeps_it_from_being_used() -> None:
    metadata = cluster(1)
    metadata.replay(RegisterControllerRecord(7, uuid(7), features=[]))
    with pytest.raises(BrokerError, match="controller 7 does not support this feature"):
        update_features(metadata, [UpdateFeature("group.version", 1)])


def test_a_bound_that_all_brokers_have_is_not_written_down_again() -> None:
    metadata = cluster(1)
    metadata.replay(ConfigRecord(ResourceType.BROKER, "", MIN_INSYNC, "2"))
    assert update_features(metadata, [UpdateFeature(ELR_FEATURE, 1)]).records == [FeatureLevelRecord(ELR_FEATURE, 1)]


def test_an_unknown_feature_can_be_turned_off() -> None:
    metadata = cluster(1)
    metadata.replay(FeatureLevelRecord("no.such", 1))
    off = UpdateFeature("no.such", 0, Direction.SAFE_DOWNGRADE)
    assert update_features(metadata, [off]).records == [FeatureLevelRecord("no.such", 0)]


def test_a_log_that_begins_anew_begins_an_epoch() -> None:
    metadata = replicated(1, 2)
    before = state(metadata)
    metadata.replay(before._replace(directories=(directory_of(1), uuid(99))).record(TOPIC_ID, 0))
    assigned(metadata, 2, Assign(TOPIC_ID, 0, directory_of(2)))
    assert state(metadata).leader_epoch == before.leader_epoch + 1
