"""Our tables of configs beside Apache Kafka's own, name by name."""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path

import pytest

from kavka_broker.core.config.broker import KAVKA_KEYS, KEYS, THROTTLE_KEYS
from kavka_broker.core.config.definition import REQUIRED, Definition, Mode, render
from kavka_broker.core.config.group_table import GROUP_KEYS
from kavka_broker.core.config.topic_table import RATE_KEYS, TOPIC_KEYS
from tests.conformance.metadata.newer_keys import NEWER_KEYS
from tests.support.programs import run
from tools.kafka_jars import class_path
from tools.kafka_jvm import java

pytestmark = pytest.mark.java

PROGRAM = Path(__file__).parent / "ConfigDefinitions.java"
TABLES: Mapping[str, Mapping[str, Definition]] = {
    "topic": {name: one for name, one in TOPIC_KEYS.items() if name not in {*RATE_KEYS, *NEWER_KEYS}},
    "broker": {name: one for name, one in KEYS.items() if name not in {*KAVKA_KEYS, *THROTTLE_KEYS, *NEWER_KEYS}},
    "group": GROUP_KEYS,
}


@lru_cache(maxsize=1)
def kafkas() -> list[list[str]]:
    output = run([*java("256M"), "-cp", class_path(), str(PROGRAM)])
    return [line.split("\t") for line in output.splitlines()]


def rows(kind: str) -> Iterator[list[str]]:
    return (row[1:] for row in kafkas() if row[0] == kind)


def described(one: Definition) -> list[str]:
    default = "<required>" if one.default is REQUIRED else str(render(one.default))
    shown = "null" if one.default is None else default
    return [one.name, one.type.name, shown, one.importance.name, str(one.internal).lower()]


@pytest.mark.parametrize("kind", TABLES)
def test_every_definition_is_kafkas(kind: str) -> None:
    assert sorted(map(described, TABLES[kind].values())) == sorted(rows(kind))


def test_a_topics_stand_in_is_kafkas() -> None:
    ours = {name: one.synonym for name, one in TABLES["topic"].items() if one.synonym is not None}
    assert ours == dict(rows("synonym"))


def test_who_may_change_a_broker_config_is_as_in_kafka() -> None:
    alterable = {name: one.mode.value for name, one in KEYS.items() if one.mode is not Mode.READ_ONLY}
    ours = {name: mode for name, mode in alterable.items() if name not in NEWER_KEYS}
    assert ours == dict(rows("mode"))
