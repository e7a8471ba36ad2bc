"""Where a value comes from: the order of places, as kafka-configs --describe --all prints it."""

import pytest

from kavka_broker.core.config.broker import KEYS, BrokerConfig
from kavka_broker.core.config.definition import ConfigError, ConfigType
from kavka_broker.core.config.describe import (
    Described,
    Layers,
    Source,
    describe_broker,
    describe_client_metrics,
    describe_every_broker,
    describe_group,
    describe_topic,
)
from kavka_broker.core.config.documentation import ABOUT
from kavka_broker.core.config.dynamic import READ_AT_START, check_altered
from kavka_broker.core.config.group_table import GROUP_KEYS
from kavka_broker.core.config.topic_table import TOPIC_KEYS
from tests.support.cluster import PROPERTIES


def layers(
    file: dict[str, str] | None = None, every: dict[str, str] | None = None, own: dict[str, str] | None = None
) -> Layers:
    return Layers(BrokerConfig.parse({**PROPERTIES, **(file or {})}), own or {}, every or {})


def shown(described: Described) -> list[str]:
    return [f"{said.source.name}:{said.name}={said.value}" for said in described.synonyms]


def topic(name: str, overrides: dict[str, str], places: Layers) -> Described:
    return {one.name: one for one in describe_topic(overrides, places)}[name]


def broker(name: str, places: Layers) -> Described:
    return {one.name: one for one in describe_broker(places)}[name]


def test_a_topics_own_word_stands_before_every_brokers_and_the_default() -> None:
    # The line that Apache Kafka 4.3.1 prints for the same.
    found = topic("retention.ms", {"retention.ms": "3600000"}, layers(every={"log.retention.ms": "7200000"}))
    assert found.value == "3600000"
    assert found.source is Source.TOPIC
    assert shown(found) == [
        "TOPIC:retention.ms=3600000",
        "DYNAMIC_DEFAULT_BROKER:log.retention.ms=7200000",
        "DEFAULT:log.retention.hours=168",
    ]


def test_a_default_of_a_coarser_unit_is_not_shown_alone() -> None:
    found = topic("retention.ms", {}, layers())
    assert (found.value, found.source, shown(found)) == ("604800000", Source.DEFAULT, [])


def test_the_places_of_a_broker_come_in_their_order() -> None:
    places = layers(
        {"log.segment.bytes": "3000000"}, {"log.segment.bytes": "4000000"}, {"log.segment.bytes": "5000000"}
    )
    found = broker("log.segment.bytes", places)
    assert found.value == "5000000"
    assert [said.source for said in found.synonyms] == [
        Source.DYNAMIC_BROKER,
        Source.DYNAMIC_DEFAULT_BROKER,
        Source.STATIC_BROKER,
        Source.DEFAULT,
    ]
    assert topic("segment.bytes", {}, places).value == "5000000"


def test_what_is_read_at_start_is_read_only() -> None:
    assert broker("node.id", layers()).read_only
    assert not broker("log.cleaner.threads", layers()).read_only


def test_what_may_not_be_altered_is_read_only() -> None:
    """Apache Kafka lets it be altered, and says so; a tool that writes back what it may would be refused."""
    for name in READ_AT_START:
        assert broker(name, layers()).read_only
        with pytest.raises(ConfigError, match="is read when a broker starts"):
            check_altered(name, "", {}, {})


def test_a_secret_has_no_value_anywhere() -> None:
    found = broker("ssl.key.password", layers({"ssl.key.password": "sesame"}))
    assert found.sensitive
    assert found.value is None
    assert shown(found) == ["STATIC_BROKER:ssl.key.password=None"]


def test_an_unknown_key_is_shown_without_its_value() -> None:
    found = broker("my.plugin.token", layers({"my.plugin.token": "sesame"}))
    assert (found.value, found.sensitive, found.read_only) == (None, True, True)
    assert shown(found) == ["STATIC_BROKER:my.plugin.token=None"]


def test_an_unknown_key_that_was_altered_is_shown_where_it_counts() -> None:
    """As by Apache Kafka (ConfigCommandIntegrationTest.testUpdateInvalidBrokerConfigs)."""
    found = broker("my.plugin.token", layers(every={"my.plugin.token": "sesame"}, own={"my.plugin.token": "open"}))
    assert (found.value, found.sensitive, found.source) == (None, True, Source.DYNAMIC_BROKER)
    assert shown(found) == ["DYNAMIC_BROKER:my.plugin.token=None", "DYNAMIC_DEFAULT_BROKER:my.plugin.token=None"]
    (of_every_broker,) = describe_every_broker(layers(every={"my.plugin.token": "sesame"}))
    assert (of_every_broker.value, of_every_broker.sensitive) == (None, True)


def test_what_was_altered_for_all_brokers_stands_alone() -> None:
    (found,) = describe_every_broker(layers(every={"log.retention.ms": "5"}))
    assert (found.name, found.value, shown(found)) == (
        "log.retention.ms",
        "5",
        ["DYNAMIC_DEFAULT_BROKER:log.retention.ms=5"],
    )


def test_every_config_of_a_group_is_shown() -> None:
    found = {one.name: one for one in describe_group({"consumer.session.timeout.ms": "50000"}, layers())}
    assert found.keys() == GROUP_KEYS.keys()
    assert found["consumer.session.timeout.ms"].source is Source.GROUP
    assert found["consumer.heartbeat.interval.ms"].source is Source.DEFAULT


def test_every_public_topic_config_is_explained() -> None:
    assert {name for name, one in TOPIC_KEYS.items() if not one.internal} <= ABOUT.keys()


def test_an_internal_config_is_shown_where_it_is_set() -> None:
    internal = next(name for name, one in KEYS.items() if one.internal and one.type is ConfigType.INT)
    assert internal not in {one.name for one in describe_broker(layers())}
    assert broker(internal, layers({internal: "7"})).value == "7"
    of_topic = {one.name: one.value for one in describe_topic({"internal.segment.bytes": "2000"}, layers())}
    assert of_topic["internal.segment.bytes"] == "2000"
    assert "internal.segment.bytes" not in {one.name for one in describe_topic({}, layers())}


def test_what_a_node_must_be_told_has_no_default() -> None:
    assert [said.source for said in broker("node.id", layers()).synonyms] == [Source.STATIC_BROKER]


def test_a_subscription_says_its_configs_and_of_the_others_their_defaults() -> None:
    found = {config.name: config for config in describe_client_metrics({"metrics": "org.apache,org.apache,kavka"})}
    assert (found["metrics"].value, found["metrics"].source) == ("org.apache,kavka", Source.CLIENT_METRICS)
    assert [synonym.value for synonym in found["metrics"].synonyms] == ["org.apache,kavka"]
    assert (found["interval.ms"].value, found["interval.ms"].source) == ("300000", Source.DEFAULT)
    assert not found["interval.ms"].synonyms


def test_a_key_of_one_listener_is_shown_before_that_of_all() -> None:
    name = "listener.name.clients.max.connection.creation.rate"
    places = layers({name: "5"}, {name: "6"}, {name: "7", "max.connection.creation.rate": "8"})
    found = broker(name, places)
    assert (found.value, found.source, found.type, found.read_only) == (
        "7",
        Source.DYNAMIC_BROKER,
        ConfigType.INT,
        True,
    )
    assert shown(found) == [
        "DYNAMIC_BROKER:listener.name.clients.max.connection.creation.rate=7",
        "DYNAMIC_BROKER:max.connection.creation.rate=8",
        "DYNAMIC_DEFAULT_BROKER:listener.name.clients.max.connection.creation.rate=6",
        "STATIC_BROKER:listener.name.clients.max.connection.creation.rate=5",
        "DEFAULT:max.connection.creation.rate=2147483647",
    ]
    assert [(one.name, one.value) for one in describe_every_broker(places)] == [(name, "6")]
    assert broker(name, layers({name: "5"})).value == "5"
