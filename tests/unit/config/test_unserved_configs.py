"""What a configuration asks for and does not get: refused where it promises protection, else named."""

import logging

import pytest

from kavka_broker.core.authorization.settings import CLASS_KEY, OPEN_KEY, STANDARD, AuthorizerSettings, settings_of
from kavka_broker.core.config.broker import KEYS, BrokerConfig
from kavka_broker.core.config.definition import ConfigError, render
from kavka_broker.core.config.unserved_configs import PROMISES, check_promises, topic_without_effect, without_effect
from kavka_broker.core.metadata.image.configs import Configs
from kavka_broker.protocol.messages.metadata.config_record import ConfigRecord
from kavka_broker.runtime.addresses import StartError, check
from kavka_broker.runtime.unserved_config_log import tell, tell_altered
from tests.support.cluster import PROPERTIES

TOPIC, BROKER = 2, 4


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("authorizer.class.name", "kafka.security.authorizer.AclAuthorizer"),
        ("super.users", "User:admin"),
        ("allow.everyone.if.no.acl.found", "false"),
        ("principal.builder.class", "com.example.Builder"),
        ("create.topic.policy.class.name", "com.example.Policy"),
        ("alter.config.policy.class.name", "com.example.Policy"),
        ("config.providers", "file"),
        ("remote.log.storage.system.enable", "true"),
        ("ssl.cipher.suites", "TLS_AES_128_GCM_SHA256"),
        ("sasl.jaas.config", "secret"),
        ("sasl.enabled.mechanisms", "SCRAM-SHA-256"),
        ("ssl.client.auth", "required"),
        ("listener.name.external.ssl.keystore.location", "/etc/key"),
        ("sasl.server.callback.handler.class", "com.example.Handler"),
        ("listener.name.external.ssl.keystore.key", "secret"),
        ("listener.name.external.scram-sha-256.sasl.jaas.config", "secret"),
    ],
)
def test_a_promise_of_protection_stops_the_start(name: str, value: str) -> None:
    config = BrokerConfig.parse({**PROPERTIES, name: value})
    with pytest.raises(StartError, match=rf"^{name}: .*remove it") as refused:
        check(config)
    assert "sesame" not in str(refused.value)


def test_the_keys_of_an_authorizer_count_where_it_runs() -> None:
    given = {**PROPERTIES, CLASS_KEY: STANDARD, "super.users": "User:a; User:CN=b,O=c", OPEN_KEY: "true"}
    config = BrokerConfig.parse(given)
    check(config)
    assert config.unknown == ()
    assert settings_of(given) == AuthorizerSettings(("User:a", "User:CN=b,O=c"), allows_unruled=True)
    with pytest.raises(StartError, match=r'^super.users: "b" is no principal; write User:name'):
        check(BrokerConfig.parse({**given, "super.users": "User:a;b"}))


def test_a_promise_at_its_default_asks_for_nothing() -> None:
    defaults = {name: render(KEYS[name].default) or "" for name in PROMISES if name in KEYS}
    spoken = {name: value for name, value in defaults.items() if value}
    assert len(spoken) > 10
    check_promises({**spoken, "super.users": "", "allow.everyone.if.no.acl.found": "true"})
    with pytest.raises(ConfigError, match="TLS"):
        check_promises({**spoken, "ssl.cipher.suites": "a"})


def test_keys_that_nothing_reads_are_named() -> None:
    of_a = ("listener.name.a.max.connections", "listener.name.a.num.io.threads")
    names = ("num.io.threads", "log.retention.ms", *of_a, "my.plugin")
    assert without_effect(names) == ("num.io.threads", "listener.name.a.num.io.threads")
    renewal = "sasl.kerberos.min.time.before.relogin"  # which protects nothing, and is taken as by Apache Kafka
    check_promises({renewal: "1000"})
    assert without_effect((renewal,)) == (renewal,)
    assert topic_without_effect(("preallocate", "retention.ms", "nope")) == ("preallocate",)


def lines(caplog: pytest.LogCaptureFixture) -> list[dict[str, object]]:
    return [record.__dict__["fields"] for record in caplog.records if record.getMessage() == "config.unserved"]


def test_each_is_one_line_in_the_log_of_the_start(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "kavka"):
        check(BrokerConfig.parse({**PROPERTIES, "num.io.threads": "4", "log.preallocate": "true"}))
    assert [line["key"] for line in lines(caplog)] == ["num.io.threads", "log.preallocate"]


def test_an_altered_config_without_effect_is_logged_by_the_brokers_it_is_for(caplog: pytest.LogCaptureFixture) -> None:
    records = [
        ConfigRecord(BROKER, "1", "num.io.threads", "4"),
        ConfigRecord(BROKER, "2", "num.network.threads", "4"),
        ConfigRecord(BROKER, "", "background.threads", "4"),
        ConfigRecord(BROKER, "", "log.retention.ms", "4"),
        ConfigRecord(TOPIC, "t", "preallocate", "true"),
        ConfigRecord(TOPIC, "t", "segment.jitter.ms", None),
    ]
    configs = Configs()
    for record in records[:4]:
        configs.replay(record)
    with caplog.at_level(logging.WARNING, "kavka"):
        tell(records, 1)
        tell_altered(configs, 1)
    assert [line["key"] for line in lines(caplog)] == [
        "num.io.threads",
        "background.threads",
        "preallocate",
        "background.threads",
        "num.io.threads",
    ]
