"""A broker's configuration: what a file comes to, and which files are refused."""

from typing import Any, cast

import pytest

from kavka_broker.core.config.broker import THROTTLE_KEYS, BrokerConfig
from kavka_broker.core.config.definition import ConfigError
from kavka_broker.core.config.topic import LogConfig, check_topic_config, with_overrides
from kavka_broker.core.metadata.image.configs import Configs
from kavka_broker.core.metadata.image.effective_config import EffectiveConfig
from kavka_broker.core.raft.voters import static_voters
from kavka_broker.protocol.messages.metadata.config_record import ConfigRecord
from tests.support.cluster import PROPERTIES

HOUR_MS = 3_600_000
BROKER = 4


def parse(**settings: str) -> BrokerConfig:
    return BrokerConfig.parse({**PROPERTIES, **{key.replace("_", "."): value for key, value in settings.items()}})


def refusal(**settings: str) -> str:
    with pytest.raises(ConfigError) as refused:
        parse(**settings)
    return str(refused.value)


def test_defaults_are_kafkas() -> None:
    config = parse()
    assert config["log.segment.bytes"] == 1 << 30
    assert config.log_config.retention_ms == 7 * 24 * HOUR_MS
    assert config["auto.create.topics.enable"] is True


@pytest.mark.parametrize("name", THROTTLE_KEYS)
def test_a_throttle_in_the_file_holds_until_it_is_altered(name: str) -> None:
    configs = Configs()
    effective = EffectiveConfig(parse(**{name: "5"}), configs)

    def value() -> Any:
        return cast("Any", effective.broker)[name]

    assert value() == 5
    configs.replay(ConfigRecord(BROKER, "", name, "7"))
    assert value() == 7
    configs.replay(ConfigRecord(BROKER, "", name, None))
    assert value() == 5


def test_what_is_missing_is_named() -> None:
    with pytest.raises(ConfigError, match=r"^node\.id: is missing"):
        BrokerConfig.parse({key: value for key, value in PROPERTIES.items() if key != "node.id"})


def test_unknown_keys_are_kept_and_named() -> None:
    config = parse(my_plugin="7", listener_name_internal_ssl_keystore_type="PEM")
    assert config.unknown == ("my.plugin",)
    assert config.given["my.plugin"] == "7"


@pytest.mark.parametrize(
    ("settings", "retention_ms"),
    [
        ({"log_retention_hours": "2"}, 2 * HOUR_MS),
        ({"log_retention_hours": "2", "log_retention_minutes": "30"}, HOUR_MS // 2),
        ({"log_retention_minutes": "30", "log_retention_ms": "5"}, 5),
        ({"log_retention_hours": "-1"}, -1),
    ],
)
def test_the_finest_unit_counts(settings: dict[str, str], retention_ms: int) -> None:
    assert parse(**settings).log_config.retention_ms == retention_ms


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"listeners": "PLAINTEXT:9092"}, 'listeners: "PLAINTEXT:9092" is not a listener; write NAME://HOST:PORT'),
        ({"listeners": "PLAINTEXT://:70000"}, "is not a listener"),
        ({"listeners": "A://:1"}, "A has no protocol; add A:PLAINTEXT to listener.security.protocol.map"),
        ({"listeners": "PLAINTEXT://:1,PLAINTEXT://:2"}, "PLAINTEXT is named twice"),
        ({"listeners": "PLAINTEXT://:9092"}, "CONTROLLER is not among listeners"),
        ({"listeners": "CONTROLLER://:9093"}, "has only controller listeners"),
        ({"advertised_listeners": "SSL://a:1"}, "SSL is not among listeners"),
        ({"advertised_listeners": "PLAINTEXT://0.0.0.0:9092"}, "is no address to connect to"),
        ({"advertised_listeners": "PLAINTEXT://a:1,CONTROLLER://0.0.0.0:2"}, "is no address to connect to"),
        ({"inter_broker_listener_name": "SSL"}, "SSL is not advertised"),
        ({"process_roles": "observer"}, "write one of broker, controller"),
        ({"process_roles": ""}, "process.roles: is empty"),
        ({"log_retention_ms": "0"}, "log.retention.ms: keeps nothing"),
        ({"log_dirs": "/a,/a"}, "names a directory twice"),
        ({"log_dirs": ""}, "log.dirs: is empty; leave the key out"),
        ({"log_roll_ms": "0"}, "log.roll.ms: 0 is not allowed; write 1 or more"),
        ({"log_roll_ms": "-1"}, "log.roll.ms: -1 is not allowed; write 1 or more"),
        ({"log_roll_jitter_ms": "-1"}, "log.roll.jitter.ms: -1 is not allowed; write 0 or more"),
        ({"log_cleaner_threads": "2", "log_cleaner_dedupe_buffer_size": "2097152"}, "each needs more than 1048576"),
        ({"broker_id": "7"}, "broker.id: 7 is not node.id=1"),
        ({"max_connections_per_ip": "0"}, "max.connections.per.ip: 0 lets nobody in"),
        ({"connections_max_idle_ms": "100"}, "connections.max.idle.ms: 100 is too short; write 101 or more"),
        ({"replica_socket_timeout_ms": "499"}, "is above replica.socket.timeout.ms"),
        ({"advertised_listeners": ""}, "advertised.listeners: is empty"),
        ({"inter_broker_listener_name": ""}, "inter.broker.listener.name: is empty"),
        ({"queued_max_request_bytes": "5"}, "holds not even one request"),
        ({"broker_heartbeat_interval_ms": "9000"}, "leaves no second chance"),
        ({"replica_fetch_wait_max_ms": "40000"}, "is above replica.lag.time.max.ms"),
        ({"controller_quorum_fetch_timeout_ms": "0"}, "0 leaves no time for an answer"),
        ({"listener_security_protocol_map": "PLAINTEXT"}, "is not a mapping"),
    ],
)
def test_what_cannot_stand_is_refused_with_the_fix(settings: dict[str, str], words: str) -> None:
    assert words in refusal(**settings)


def test_a_setting_of_one_broker_wins_over_that_of_all() -> None:
    config = parse(log_retention_ms="1000")
    altered = config.altered({"log.retention.ms": "2000", "message.max.bytes": "10"}, {"log.retention.ms": "3000"})
    assert altered.log_config.retention_ms == 3000
    assert altered.log_config.max_message_bytes == 10
    assert config.log_config.retention_ms == 1000


def test_a_dynamic_value_that_cannot_be_read_does_not_keep_a_broker_from_starting() -> None:
    assert parse().altered({"log.retention.ms": "soon"}).log_config.retention_ms == 7 * 24 * HOUR_MS


def test_a_topics_own_word_comes_first() -> None:
    overrides = {"retention.ms": "5", "cleanup.policy": "compact,delete"}
    config = with_overrides(parse(log_retention_ms="1000").log_config, overrides)
    assert config.retention_ms == 5
    assert config.compacts
    assert config.deletes


@pytest.mark.parametrize("size", ["-2", "0"])
def test_an_internal_segment_size_below_1_counts_as_if_it_were_not_set(size: str) -> None:
    config = with_overrides(LogConfig(), {"internal.segment.bytes": size, "segment.bytes": "2097152"})
    assert config.segment_bytes_max == 2097152


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        ({"retention": "5"}, "retention: is not a config of a topic"),
        ({"segment.bytes": "5"}, "write 1048576 or more"),
        ({"min.compaction.lag.ms": "5", "max.compaction.lag.ms": "1"}, "is above max.compaction.lag.ms"),
        ({"remote.storage.enable": "true"}, "has no remote storage"),
        ({"leader.replication.throttled.replicas": "0-1"}, "partition:broker"),
    ],
)
def test_a_topics_word_is_checked(overrides: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        check_topic_config(overrides)


@pytest.mark.parametrize("throttled", ["*", "0:1,1:2", ""])
def test_throttled_replicas_are_pairs_or_all(throttled: str) -> None:
    check_topic_config({"follower.replication.throttled.replicas": throttled})


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("offsets.topic.segment.bytes", "1048575", "write 1048576 or more"),
        ("transaction.state.log.segment.bytes", "2000", "write 1048576 or more"),
        ("offsets.topic.num.partitions", "10001", "write 1 to 10000"),
        ("transaction.state.log.num.partitions", "10001", "write 1 to 10000"),
        ("num.partitions", "10001", "write 1 to 10000"),
        ("default.replication.factor", "32768", "write at most 32767"),
    ],
)
def test_a_config_with_which_no_internal_topic_can_be_created_is_refused(name: str, value: str, words: str) -> None:
    assert refusal(**{name: value}) == f'{name}: "{value}" is not allowed; {words}'


def test_the_older_name_of_a_nodes_id_says_the_same() -> None:
    assert (parse()["broker.id"], parse().given["broker.id"]) == (1, "1")
    assert parse(broker_id="1")["broker.id"] == 1


def test_a_broker_without_a_listener_is_refused() -> None:
    assert refusal(listeners="").startswith("listeners: is empty")


def test_a_session_has_room_for_two_heartbeats() -> None:
    settings = {"broker.session.timeout.ms": "1000"}
    BrokerConfig.parse({**PROPERTIES, **settings, "broker.heartbeat.interval.ms": "500"})
    with pytest.raises(ConfigError, match="no second chance"):
        BrokerConfig.parse({**PROPERTIES, **settings, "broker.heartbeat.interval.ms": "501"})


@pytest.mark.parametrize(
    ("items", "words"),
    [
        (["1@a:9093", "1@b:9093"], "node 1 is named twice"),
        (["1:9093"], "write ID@HOST:PORT"),
        (["one@a:9093"], "write ID@HOST:PORT"),
        (["1@a"], "write ID@HOST:PORT"),
        (["1@a:http"], "write ID@HOST:PORT"),
    ],
)
def test_voters_of_a_file_that_cannot_be(items: list[str], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        static_voters(items, "CONTROLLER")
