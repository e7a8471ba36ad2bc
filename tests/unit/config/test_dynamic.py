"""What configs may be altered to: Apache Kafka's rules, of which tests/conformance asks it."""

import pytest

from kavka_broker.core.config.definition import ConfigError
from kavka_broker.core.config.dynamic import check_altered, check_group

REFUSED = [
    ("listeners", "PLAINTEXT://:9092", {}, "when a broker starts"),
    ("sasl.mechanism.inter.broker.protocol", "PLAIN", {}, "when a broker starts"),
    ("ssl.endpoint.identification.algorithm", "", {}, "when a broker starts"),
    ("log.retention.ms", "0", {}, "every record"),
    ("log.roll.ms", "0", {}, "write 1 or more"),
    ("log.roll.jitter.ms", "-1", {}, "write 0 or more"),
    ("max.connections", "0", {}, "write 1 or more"),
    ("listener.name.a.max.connections", "0", {}, "write 1 or more"),
    ("max.connections.per.ip", "0", {}, "lets nobody in"),
    ("max.connections.per.ip.overrides", "10.0.0.1", {}, "address:count"),
    ("num.io.threads", "17", {}, "write 4 to 16"),
    ("num.io.threads", "3", {}, "write 4 to 16"),
    ("num.io.threads", "8", {"num.io.threads": "3"}, "write 1 to 6"),
    ("log.cleaner.threads", "2", {"log.cleaner.dedupe.buffer.size": "2000000"}, "each needs more"),
    ("log.local.retention.ms", "700000000", {}, "log.retention.ms=604800000"),
    ("log.local.retention.ms", "-1", {"log.retention.ms": "5"}, "write at most that"),
    ("group.consumer.assignment.interval.ms", "15001", {}, "at most 15000"),
    ("metric.reporters", "com.example.R", {}, "loads classes"),
    ("log.cleaner.min.cleanable.ratio", "nan", {}, "not a number"),
]
ALLOWED = [
    ("log.retention.ms", "-1", {}),
    ("max.connections.per.ip", "0", {"max.connections.per.ip.overrides": "10.0.0.1:5"}),
    ("max.connections.per.ip.overrides", "10.0.0.1:5,backup.example.org:0", {}),
    ("num.io.threads", "16", {}),
    ("num.io.threads", "4", {}),
    ("num.io.threads", "1", {"num.io.threads": "3"}),
    ("num.io.threads", "6", {"num.io.threads": "3"}),
    ("group.consumer.assignment.interval.ms", "15000", {}),
    ("log.local.retention.ms", "0", {"log.retention.ms": "5"}),
    ("log.local.retention.ms", "5", {"log.retention.ms": "5"}),
    ("log.local.retention.ms", "-2", {"log.retention.ms": "5"}),
    ("log.local.retention.ms", "-1", {"log.retention.ms": "-1"}),
    ("log.cleaner.min.cleanable.ratio", "0.5d", {}),
]


@pytest.mark.parametrize(("name", "value", "before", "words"), REFUSED)
def test_an_alteration_that_cannot_take_effect_is_refused(
    name: str, value: str, before: dict[str, str], words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        check_altered(name, value, {**before, name: value}, before)


@pytest.mark.parametrize(("name", "value", "before"), ALLOWED)
def test_an_alteration_that_takes_effect_is_allowed(name: str, value: str, before: dict[str, str]) -> None:
    check_altered(name, value, {**before, name: value}, before)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("consumer.heartbeat.interval.ms", "1"),
        ("share.session.timeout.ms", "60001"),
        ("streams.num.standby.replicas", "3"),
        ("share.auto.offset.reset", "by_duration:1h"),
        ("nope", "1"),
    ],
)
def test_a_group_keeps_to_the_bounds_of_brokers(name: str, value: str) -> None:
    with pytest.raises(ConfigError, match=name):
        check_group({name: value})
    check_group({"consumer.heartbeat.interval.ms": "6000", "share.auto.offset.reset": "by_duration:PT1H30M"})


def test_a_group_may_be_at_the_bounds_of_its_brokers() -> None:
    for value in ("5000", "15000"):
        check_group({"consumer.heartbeat.interval.ms": value})
    for value in ("4999", "15001"):
        with pytest.raises(ConfigError, match=r"consumer\.heartbeat\.interval\.ms"):
            check_group({"consumer.heartbeat.interval.ms": value})
