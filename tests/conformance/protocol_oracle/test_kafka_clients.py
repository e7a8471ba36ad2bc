"""Every message and version, byte for byte against Apache Kafka's own generated classes.

Three comparisons for a random message: Kafka makes our bytes from its JSON, writes our bytes again after reading them,
and reads in them what the message says.
"""

import json
import subprocess
from pathlib import Path

import pytest

from kavka_broker.protocol.codec import encode
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.message import Message
from tests.conformance.protocol_oracle.kafka_json import holds_records, to_json
from tests.property.protocol.building import Seeded, build, every_message, versions
from tools.generate_messages.schema import NEWER
from tools.kafka_jars import class_path, newer_class_path
from tools.kafka_jvm import java

SEEDS = 6
JAVA_PACKAGES = {
    "messages": "org.apache.kafka.common.message",
    "metadata": "org.apache.kafka.common.metadata",
    "group": "org.apache.kafka.coordinator.group.generated",
    "transaction": "org.apache.kafka.coordinator.transaction.generated",
    "storage": "org.apache.kafka.server.log.remote.metadata.storage.generated",
    "raft": "org.apache.kafka.raft.generated",
    "share": "org.apache.kafka.coordinator.share.generated",
}
DATA_KINDS = {"header", "request", "response"}
Case = tuple[Message, int]


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    return [
        (build(kind, version, Seeded(seed)), version)
        for kind in every_message()
        for version in versions(kind)
        for seed in range(SEEDS)
    ]


@pytest.fixture(scope="module")
def answers(cases: list[Case]) -> list[str]:
    """What Apache Kafka says of each case, of some messages its newest release."""
    asked: dict[str, list[str]] = {newer_class_path(): [], class_path(): []}
    for message, version in cases:
        asked[path_of(message)].append(question(message, version))
    told = {path: iter(run_java("Oracle.java", "\n".join(lines), path)) for path, lines in asked.items()}
    found = [next(told[path_of(message)]) for message, _ in cases]
    assert not any(list(rest) for rest in told.values())
    return found


@pytest.mark.java
def test_kafka_reads_all_that_we_write(cases: list[Case], answers: list[str]) -> None:
    refused = [(case, answer) for case, answer in zip(cases, answers, strict=True) if answer.startswith("error")]
    assert not refused, refused[:3]


@pytest.mark.java
def test_bytes_are_those_of_kafka(cases: list[Case], answers: list[str]) -> None:
    made = 0
    for case, answer in zip(cases, answers, strict=True):
        from_json, again, _ = answer.split("\t")
        ours = encode(*case).hex()
        assert again == ours, case
        if from_json != "-":
            made += 1
            assert from_json == ours, case
    assert made > len(cases) * 0.9


@pytest.mark.java
def test_kafka_understands_what_we_mean(cases: list[Case], answers: list[str]) -> None:
    for case, answer in zip(cases, answers, strict=True):
        assert json.loads(answer.split("\t")[2]) == to_json(*case), case


@pytest.mark.java
def test_error_codes_are_those_of_kafka() -> None:
    kafkas = dict(line.split() for line in run_java("Errors.java", ""))
    assert {name: int(code) for name, code in kafkas.items()} == {code.name: code.value for code in ErrorCode}


def path_of(message: Message) -> str:
    return newer_class_path() if NEWER.fullmatch(message.NAME) else class_path()


def question(message: Message, version: int) -> str:
    value = to_json(message, version)
    text = "-" if holds_records(value) else json.dumps(value)
    return f"{java_class(message)}\t{version}\t{encode(message, version).hex()}\t{text}"


def java_class(message: Message) -> str:
    package = JAVA_PACKAGES[type(message).__module__.split(".")[-2]]
    return f"{package}.{message.NAME}{'Data' if message.KIND in DATA_KINDS else ''}"


def run_java(source: str, text: str, path: str = "") -> list[str]:
    command = [*java("256M"), "-cp", path or class_path(), str(Path(__file__).with_name(source))]
    ran = subprocess.run(command, input=text, capture_output=True, text=True, timeout=300, check=True)
    return ran.stdout.splitlines()
