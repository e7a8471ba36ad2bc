"""IncrementalAlterConfigs' rules: operations, checks, and what writes nothing."""

import pytest

from kavka_broker.core.metadata.decide.configs import Change, Operation, alter_configs, replace_configs
from kavka_broker.core.metadata.image.configs import Resource, ResourceType
from kavka_broker.core.metadata.image.features import ELR_FEATURE, METADATA_VERSION
from kavka_broker.core.telemetry.subscription import SUBSCRIPTIONS_MAX
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.metadata.feature_level_record import FeatureLevelRecord
from tests.support.cluster import cluster, enact

TOPIC = Resource(ResourceType.TOPIC, "t")
BROKER = Resource(ResourceType.BROKER, "1")
EVERY_BROKER = Resource(ResourceType.BROKER, "")
SET, DELETE, APPEND, SUBTRACT = Operation


def after(*steps: Change, resource: Resource = TOPIC) -> dict[str, str]:
    """What a resource says after changes, one request each."""
    metadata = cluster(1, topics={"t": 1})
    for step in steps:
        enact(metadata, alter_configs(metadata, resource, [step]))
    return dict(metadata.configs.of(resource))


def test_a_value_is_set_changed_and_deleted() -> None:
    assert after(Change("retention.ms", SET, "5")) == {"retention.ms": "5"}
    assert after(Change("retention.ms", SET, "5"), Change("retention.ms", SET, "6")) == {"retention.ms": "6"}
    assert after(Change("retention.ms", SET, "5"), Change("retention.ms", DELETE)) == {}


def test_a_list_begins_with_its_default() -> None:
    assert after(Change("cleanup.policy", APPEND, "compact")) == {"cleanup.policy": "delete,compact"}
    assert after(Change("cleanup.policy", SUBTRACT, "delete")) == {"cleanup.policy": ""}


def test_a_list_that_was_set_to_nothing_begins_empty() -> None:
    """Otherwise an appended `compact` would be `delete,compact`, and retention would take the records."""
    empty = Change("cleanup.policy", SET, "")
    assert after(empty, Change("cleanup.policy", APPEND, "compact")) == {"cleanup.policy": "compact"}
    assert after(empty, Change("cleanup.policy", SUBTRACT, "delete")) == {"cleanup.policy": ""}
    subtracted = Change("cleanup.policy", SUBTRACT, "delete")
    assert after(subtracted, Change("cleanup.policy", APPEND, "compact")) == {"cleanup.policy": "compact"}
    assert after(
        Change("log.cleanup.policy", SET, ""), Change("log.cleanup.policy", APPEND, "compact"), resource=EVERY_BROKER
    ) == {"log.cleanup.policy": "compact"}
    throttled = "leader.replication.throttled.replicas"
    assert after(Change(throttled, SET, ""), Change(throttled, APPEND, "0:1")) == {throttled: "0:1"}


@pytest.mark.parametrize("operation", [SET, APPEND])
def test_a_list_keeps_an_item_once(operation: int) -> None:
    assert after(Change("cleanup.policy", operation, "delete,delete")) == {"cleanup.policy": "delete"}
    twice = Change("cleanup.policy", operation, "compact, delete,compact")
    assert sorted(after(twice)["cleanup.policy"].split(",")) == ["compact", "delete"]


@pytest.mark.parametrize(
    ("resource", "name"),
    [(TOPIC, "cleanup.policy"), (EVERY_BROKER, "log.cleanup.policy")],
)
@pytest.mark.parametrize("value", ["", ",", "compact,,delete", "compact,"])
def test_an_empty_item_is_not_appended(resource: Resource, name: str, value: str) -> None:
    metadata = cluster(1, topics={"t": 1})
    enact(metadata, alter_configs(metadata, resource, [Change(name, SET, "delete")]))
    with pytest.raises(BrokerError, match=name) as refusal:
        alter_configs(metadata, resource, [Change(name, APPEND, value)])
    assert refusal.value.code is ErrorCode.INVALID_CONFIG


def test_an_item_is_appended_only_once() -> None:
    assert after(Change("cleanup.policy", APPEND, "compact,delete")) == {"cleanup.policy": "delete,compact"}


def test_what_says_the_same_writes_nothing() -> None:
    metadata = cluster(1, topics={"t": 1})
    enact(metadata, alter_configs(metadata, TOPIC, [Change("retention.ms", SET, "5")]))
    assert not alter_configs(metadata, TOPIC, [Change("retention.ms", SET, "5")]).records
    assert not alter_configs(metadata, TOPIC, [Change("segment.ms", DELETE)]).records


def test_an_unknown_key_can_be_deleted() -> None:
    assert after(Change("nope", DELETE)) == {}


def test_subscriptions_to_client_metrics_are_bounded() -> None:
    metadata = cluster(1)
    named = [Resource(ResourceType.CLIENT_METRICS, f"s{number}") for number in range(SUBSCRIPTIONS_MAX + 1)]
    for resource in named[:-1]:
        enact(metadata, alter_configs(metadata, resource, [Change("metrics", SET, "a")]))
    with pytest.raises(BrokerError) as refusal:
        alter_configs(metadata, named[-1], [Change("metrics", SET, "a")])
    assert refusal.value.code is ErrorCode.POLICY_VIOLATION
    assert alter_configs(metadata, named[0], [Change("metrics", SET, "b")]).records
    enact(metadata, alter_configs(metadata, named[0], [Change("metrics", DELETE)]))
    assert alter_configs(metadata, named[-1], [Change("metrics", SET, "a")]).records


def test_a_broker_may_be_told_what_only_a_plugin_knows() -> None:
    assert after(Change("my.plugin", SET, "7"), resource=BROKER) == {"my.plugin": "7"}


@pytest.mark.parametrize(
    ("resource", "changes", "code"),
    [
        (Resource(2, "nope"), [Change("retention.ms", SET, "5")], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (Resource(2, "a b"), [Change("retention.ms", SET, "5")], ErrorCode.INVALID_TOPIC_EXCEPTION),
        (Resource(2, ""), [Change("retention.ms", SET, "5")], ErrorCode.INVALID_REQUEST),
        (Resource(5, "x"), [Change("retention.ms", SET, "5")], ErrorCode.INVALID_REQUEST),
        (TOPIC, [Change("nope", SET, "5")], ErrorCode.INVALID_CONFIG),
        (TOPIC, [Change("retention.ms", SET, "soon")], ErrorCode.INVALID_CONFIG),
        (TOPIC, [Change("retention.ms", SET, None)], ErrorCode.INVALID_REQUEST),
        (TOPIC, [Change("retention.ms", SET, "1"), Change("retention.ms", DELETE)], ErrorCode.INVALID_REQUEST),
        (TOPIC, [Change("retention.ms", APPEND, "1")], ErrorCode.INVALID_CONFIG),
        (TOPIC, [Change("cleanup.policy", APPEND, None)], ErrorCode.INVALID_REQUEST),
        (TOPIC, [Change("nope", APPEND, "1")], ErrorCode.INVALID_CONFIG),
        (TOPIC, [Change("cleanup.policy", 9, "1")], ErrorCode.INVALID_REQUEST),
        (BROKER, [Change("node.id", SET, "5")], ErrorCode.INVALID_REQUEST),
        (BROKER, [Change("log.cleaner.threads", SET, "x")], ErrorCode.INVALID_REQUEST),
        (Resource(4, "one"), [Change("log.cleaner.threads", SET, "2")], ErrorCode.INVALID_REQUEST),
        (EVERY_BROKER, [Change("listeners", SET, "PLAINTEXT://:1")], ErrorCode.INVALID_REQUEST),
        (EVERY_BROKER, [Change("listener.name.clients.nope", SET, "1")], ErrorCode.INVALID_REQUEST),
        (Resource(32, ""), [Change("consumer.session.timeout.ms", SET, "50000")], ErrorCode.INVALID_REQUEST),
        (Resource(32, "g"), [Change("nope", SET, "5")], ErrorCode.INVALID_CONFIG),
    ],
)
def test_refusals_have_kafkas_codes(resource: Resource, changes: list[Change], code: ErrorCode) -> None:
    with pytest.raises(BrokerError) as refusal:
        alter_configs(cluster(1, topics={"t": 1}), resource, changes)
    assert refusal.value.code is code
    assert refusal.value.message


def test_two_keys_that_cannot_stand_together_are_refused_together() -> None:
    changes = [Change("min.compaction.lag.ms", SET, "5"), Change("max.compaction.lag.ms", SET, "1")]
    with pytest.raises(BrokerError, match=r"is above max\.compaction\.lag\.ms"):
        alter_configs(cluster(1, topics={"t": 1}), TOPIC, changes)


def test_with_eligible_leader_replicas_the_bound_is_the_same_everywhere() -> None:
    metadata = cluster(1)
    metadata.replay(FeatureLevelRecord(ELR_FEATURE, 1))
    enact(metadata, alter_configs(metadata, EVERY_BROKER, [Change("min.insync.replicas", SET, "2")]))
    for resource, change in (
        (BROKER, Change("min.insync.replicas", SET, "2")),
        (EVERY_BROKER, Change("min.insync.replicas", DELETE)),
    ):
        with pytest.raises(BrokerError) as refusal:
            alter_configs(metadata, resource, [change])
        assert refusal.value.code is ErrorCode.INVALID_CONFIG


@pytest.mark.parametrize(
    "name", ["principal.builder.class", "ssl.cipher.suites", "super.users", "listener.name.a.ssl.protocol"]
)
def test_a_promise_that_nothing_keeps_is_refused_while_the_broker_runs(name: str) -> None:
    with pytest.raises(BrokerError, match="remove it") as refused:
        after(Change(name, SET, "required"), resource=BROKER)
    assert refused.value.code is ErrorCode.INVALID_REQUEST
    assert after(Change(name, DELETE), resource=BROKER) == {}


def test_a_replacement_says_all_that_is_configured() -> None:
    metadata = cluster(1, topics={"t": 1})
    for said in ([("retention.ms", "5"), ("segment.ms", "6")], [("segment.ms", "7")]):
        enact(metadata, replace_configs(metadata, TOPIC, said))
    assert dict(metadata.configs.of(TOPIC)) == {"segment.ms": "7"}
    enact(metadata, replace_configs(metadata, TOPIC, []))
    assert dict(metadata.configs.of(TOPIC)) == {}


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ([("retention.ms", None)], ErrorCode.INVALID_REQUEST),
        ([("retention.ms", "5"), ("retention.ms", "6")], ErrorCode.INVALID_REQUEST),
        ([("retention.ms", "abc")], ErrorCode.INVALID_CONFIG),
    ],
)
def test_a_replacement_that_cannot_stand_changes_nothing(said: list[tuple[str, str | None]], code: ErrorCode) -> None:
    with pytest.raises(BrokerError) as refused:
        replace_configs(cluster(1, topics={"t": 1}), TOPIC, said)
    assert refused.value.code is code


def test_a_value_is_judged_together_with_those_for_all_brokers() -> None:
    metadata = cluster(1, topics={"t": 1})
    enact(
        metadata, alter_configs(metadata, EVERY_BROKER, [Change("max.connections.per.ip.overrides", SET, "10.0.0.1:1")])
    )
    assert alter_configs(metadata, BROKER, [Change("max.connections.per.ip", SET, "0")]).records


def test_only_a_node_that_is_known_has_configs() -> None:
    with pytest.raises(BrokerError, match="there is no node 9") as refusal:
        alter_configs(cluster(1), Resource(ResourceType.BROKER, "9"), [Change("log.segment.bytes", SET, "2000000")])
    assert refusal.value.code is ErrorCode.BROKER_ID_NOT_REGISTERED


def test_what_belongs_to_one_broker_is_altered_there() -> None:
    with pytest.raises(BrokerError, match="belongs to one broker"):
        alter_configs(cluster(1), EVERY_BROKER, [Change("cordoned.log.dirs", SET, "")])


@pytest.mark.parametrize(("level", "is_kept"), [(29, False), (30, True)])
def test_directories_are_cordoned_where_the_level_can_keep_it(level: int, is_kept: bool) -> None:
    metadata = cluster(1)
    metadata.replay(FeatureLevelRecord(METADATA_VERSION, level))
    changes = [Change("cordoned.log.dirs", SET, "/a")]
    if is_kept:
        assert alter_configs(metadata, BROKER, changes).records
        return
    with pytest.raises(BrokerError, match="29 cannot keep it; raise it to 30 or more"):
        alter_configs(metadata, BROKER, changes)
    assert alter_configs(metadata, BROKER, [Change("cordoned.log.dirs", SET, "")]).records


CLIENT_METRICS = Resource(ResourceType.CLIENT_METRICS, "each")


@pytest.mark.parametrize(
    ("resource", "name", "value", "code"),
    [
        (Resource(ResourceType.TOPIC, "gone"), "retention.ms", "long", ErrorCode.INVALID_CONFIG),
        (Resource(ResourceType.TOPIC, "gone"), "retention.ms", "5", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (CLIENT_METRICS, "interval.ms", "5", ErrorCode.INVALID_REQUEST),
        (CLIENT_METRICS, "match", "nobody=x", ErrorCode.INVALID_CONFIG),
        (CLIENT_METRICS, "metrics", "a,,b", ErrorCode.INVALID_CONFIG),
    ],
)
def test_values_of_a_topic_are_judged_before_its_name(
    resource: Resource, name: str, value: str, code: ErrorCode
) -> None:
    with pytest.raises(BrokerError) as refused:
        replace_configs(cluster(1), resource, [(name, value)])
    assert refused.value.code is code


def test_lists_of_a_subscription_are_set_and_not_appended_to() -> None:
    metadata = cluster(1)
    enact(metadata, alter_configs(metadata, CLIENT_METRICS, [Change("metrics", SET, "org.apache")]))
    with pytest.raises(BrokerError) as refused:
        alter_configs(metadata, CLIENT_METRICS, [Change("metrics", APPEND, "kavka")])
    assert refused.value.code is ErrorCode.INVALID_CONFIG
