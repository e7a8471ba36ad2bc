"""What a node needs to speak to others: its keys, and refusals that name the key and show no password."""

from collections.abc import Mapping

import pytest

from kavka_broker.core.authentication.inter_node import LinkSettings, LoginSettings, to_brokers, to_controllers
from kavka_broker.core.authentication.settings import PLAIN_MODULE, SCRAM_MODULE
from kavka_broker.core.config.broker import BrokerConfig
from kavka_broker.core.config.definition import ConfigError
from kavka_broker.runtime.addresses import StartError, check

SECRET = "s3cr3t"
LOGIN = f'required username="node" password="{SECRET}" user_node="{SECRET}";'
GIVEN = {
    "node.id": "1",
    "process.roles": "broker,controller",
    "controller.listener.names": "CONTROLLER",
    "listeners": "CLIENTS://:9092,INSIDE://:9091,CONTROLLER://:9093",
    "listener.security.protocol.map": "CLIENTS:PLAINTEXT,INSIDE:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
    "advertised.listeners": "CLIENTS://localhost:9092,INSIDE://localhost:9091",
    "inter.broker.listener.name": "INSIDE",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
    "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
    "sasl.mechanism.controller.protocol": "PLAIN",
    "listener.name.inside.plain.sasl.jaas.config": f"{PLAIN_MODULE} {LOGIN}",
    "listener.name.inside.scram-sha-512.sasl.jaas.config": f"{SCRAM_MODULE} {LOGIN}",
    "listener.name.controller.plain.sasl.jaas.config": f"{PLAIN_MODULE} {LOGIN}",
}
PLAIN_JAAS = "listener.name.controller.plain.sasl.jaas.config"
SCRAM_JAAS = "listener.name.inside.scram-sha-512.sasl.jaas.config"


def config(changed: Mapping[str, str | None] | None = None) -> BrokerConfig:
    wanted = {**GIVEN, **(changed or {})}
    return BrokerConfig.parse({name: text for name, text in wanted.items() if text is not None})


def test_a_node_logs_in_at_each_listener_as_its_keys_say() -> None:
    found = config()
    check(found)
    assert to_brokers(found) == LinkSettings("SASL_PLAINTEXT", login=LoginSettings("SCRAM-SHA-512", "node", SECRET))
    assert to_controllers(found) == LinkSettings("SASL_PLAINTEXT", login=LoginSettings("PLAIN", "node", SECRET))
    assert SECRET not in repr(to_brokers(found))


def test_a_broker_alone_needs_a_login_at_the_controllers() -> None:
    alone = {"process.roles": "broker", "listeners": "CLIENTS://:9092,INSIDE://:9091"}
    assert to_controllers(config(alone)).login is not None
    with pytest.raises(StartError, match=r"controller\.plain\.sasl\.jaas\.config.*is missing"):
        check(config({**alone, PLAIN_JAAS: None}))


def test_names_of_certificates_count_unless_the_key_is_empty() -> None:
    encrypted = {
        "listener.security.protocol.map": "CLIENTS:PLAINTEXT,INSIDE:SSL,CONTROLLER:SASL_PLAINTEXT",
        "sasl.mechanism.inter.broker.protocol": None,
        SCRAM_JAAS: None,
        "listener.name.inside.plain.sasl.jaas.config": None,
    }
    tls = to_brokers(config(encrypted)).tls
    assert tls is not None
    assert tls.checks_names
    key = "listener.name.inside.ssl.endpoint.identification.algorithm"
    tls = to_brokers(config({**encrypted, key: ""})).tls
    assert tls is not None
    assert not tls.checks_names
    with pytest.raises(ConfigError, match="ldaps"):
        to_brokers(config({**encrypted, key: "ldaps"}))


@pytest.mark.parametrize(
    ("changed", "key", "words"),
    [
        ({"sasl.mechanism.inter.broker.protocol": None}, "sasl.mechanism.inter.broker.protocol", "GSSAPI"),
        ({"sasl.mechanism.inter.broker.protocol": "plain"}, "sasl.mechanism.inter.broker.protocol", "plain"),
        ({"sasl.mechanism.controller.protocol": "SCRAM-SHA-512"}, "sasl.mechanism.controller.protocol", "elect"),
        ({"sasl.enabled.mechanisms": "PLAIN"}, "sasl.mechanism.inter.broker.protocol", "add it"),
        ({SCRAM_JAAS: None}, SCRAM_JAAS, "is missing"),
        ({SCRAM_JAAS: f"{SCRAM_MODULE} required;"}, SCRAM_JAAS, "no username"),
        ({SCRAM_JAAS: f'{SCRAM_MODULE} required username="{SECRET}";'}, SCRAM_JAAS, "no username and password"),
        ({PLAIN_JAAS: f"{SCRAM_MODULE} {LOGIN}"}, PLAIN_JAAS, "not served"),
        ({PLAIN_JAAS: f'{PLAIN_MODULE} required user_node="{SECRET}";'}, PLAIN_JAAS, "no username"),
    ],
)
def test_what_lets_no_node_in_stops_the_start(changed: dict[str, str | None], key: str, words: str) -> None:
    with pytest.raises(StartError, match=words) as refused:
        check(config(changed))
    assert str(refused.value).startswith(key)
    assert SECRET not in str(refused.value)


def test_a_mechanism_for_nodes_that_speak_no_sasl_stops_the_start() -> None:
    open_nodes = {
        "listener.security.protocol.map": "CLIENTS:PLAINTEXT,INSIDE:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "sasl.enabled.mechanisms": None,
        "sasl.mechanism.controller.protocol": None,
        **{key: None for key in GIVEN if key.endswith("jaas.config")},
    }
    with pytest.raises(StartError, match=r"sasl\.mechanism\.inter\.broker\.protocol: no listener speaks SASL"):
        check(config(open_nodes))


def test_a_listener_of_nodes_without_a_protocol_is_named() -> None:
    apart = {"process.roles": "broker", "listeners": "CLIENTS://:9092,INSIDE://:9091"}
    protocols = {"listener.security.protocol.map": "CLIENTS:PLAINTEXT,INSIDE:SASL_PLAINTEXT"}
    with pytest.raises(StartError, match=r"listener\.security\.protocol\.map: .*CONTROLLER"):
        check(config({**apart, **protocols}))
