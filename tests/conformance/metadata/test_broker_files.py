"""Which brokers' files are refused at a start: Kavka beside Apache Kafka's own classes, a setting at a time."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from kavka_broker.core.config.broker import KAVKA_KEYS, KEYS, THROTTLE_KEYS, BrokerConfig
from kavka_broker.core.config.definition import ConfigError, ConfigType
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kavka_broker.protocol.messages.create_topics_response import CreateTopicsResponse
from tests.conformance.metadata.newer_keys import NEWER_KEYS
from tests.support.asking import ask
from tests.support.programs import run
from tests.support.servers import Server
from tools.kafka_jars import class_path
from tools.kafka_jvm import java

PROGRAM = Path(__file__).parent / "BrokerFiles.java"
PLAIN = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.quorum.bootstrap.servers": "h:9093",
    "listeners": "PLAINTEXT://h:9092,CONTROLLER://h:9093",
    "controller.listener.names": "CONTROLLER",
}
NUMBERS = ("-2", "-1", "0", "1", "1048576")
VALUES = {
    **dict.fromkeys((ConfigType.INT, ConfigType.LONG, ConfigType.SHORT, ConfigType.DOUBLE), NUMBERS),
    **dict.fromkeys((ConfigType.STRING, ConfigType.LIST), ("", "nonsense")),
}
#: Kavka refuses what would leave a node without a second chance, retention below -1 in any unit, and what no topic can
#: be created with: Apache Kafka takes that, and refuses each creation of the topic.
STRICTER = {
    *((f"{name}.segment.bytes", "1") for name in ("offsets.topic", "transaction.state.log")),
    *((f"{name}num.partitions", "1048576") for name in ("", "offsets.topic.", "transaction.state.log.")),
    ("default.replication.factor", "1048576"),
    *((f"controller.quorum.{name}.timeout.ms", "0") for name in ("election", "fetch", "request")),
    ("broker.heartbeat.interval.ms", "1048576"),
    *(("broker.session.timeout.ms", value) for value in NUMBERS[:-1]),
    *((f"log.retention.{unit}", "-2") for unit in ("hours", "minutes", "ms")),
}
#: Voters and their addresses are judged where a controller starts; no threads leave the cleaner off.
LATER = {
    ("controller.quorum.bootstrap.servers", ""),
    ("controller.quorum.bootstrap.servers", "nonsense"),
    ("controller.quorum.voters", "nonsense"),
    ("log.cleaner.threads", "0"),
}


def settings() -> Iterator[tuple[str, str]]:
    """Every key that Kavka reads with each odd value of its type."""
    for name, definition in KEYS.items():
        if definition.served and name not in {*KAVKA_KEYS, *THROTTLE_KEYS, *NEWER_KEYS}:
            yield from ((name, value) for value in VALUES.get(definition.type, ()))


def is_taken(file: Mapping[str, str]) -> bool:
    try:
        BrokerConfig.parse(file)
    except ConfigError:
        return False
    return True


@pytest.mark.java
def test_a_file_is_refused_where_kafka_refuses_it() -> None:
    tried = list(settings())
    files = [{**PLAIN, name: value} for name, value in tried]
    lines = "".join("\t".join(f"{key}={value}" for key, value in file.items()) + "\n" for file in files)
    said = run([*java("256M"), "-cp", class_path(), str(PROGRAM)], stdin=lines).splitlines()
    kafkas = [word == "taken" for word in said if word in ("taken", "refused")]
    ours = [is_taken(file) for file in files]
    different = {setting: own for setting, own, theirs in zip(tried, ours, kafkas, strict=True) if own is not theirs}
    assert different == {**dict.fromkeys(STRICTER, False), **dict.fromkeys(LATER, True)}


@pytest.mark.parametrize("factor", ["0", "-1"])
def test_a_default_of_no_replicas_is_refused_where_a_topic_asks_for_it(
    start: Callable[..., Server], factor: str
) -> None:
    server = start(default_replication_factor=factor)
    for name, replicas, code in (("t", -1, ErrorCode.INVALID_REPLICATION_FACTOR), ("u", 1, ErrorCode.NONE)):
        request = CreateTopicsRequest([CreatableTopic(name, 1, replicas)], 5000)
        (result,) = ask(server.address, request, CreateTopicsResponse).topics
        assert ErrorCode(result.error_code) is code
