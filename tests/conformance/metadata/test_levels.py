"""A cluster of an older metadata.version: Kavka serves it, and writes what brokers of that release can read."""

import re
from pathlib import Path

import pytest

from kavka_broker.core.metadata.image.features import METADATA_VERSION
from kavka_broker.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kavka_broker.protocol.messages.create_topics_response import CreateTopicsResponse
from kavka_broker.protocol.messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest
from kavka_broker.protocol.messages.update_features_response import UpdateFeaturesResponse
from tests.conformance.metadata.test_exchange import dumped, image, swapped
from tests.support.asking import ask
from tests.support.servers import Server, start_apache_kafka, start_kavka

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.extended]

LOG = Path("__cluster_metadata-0")
VERSIONS = re.compile(r'"type":"(PARTITION_RECORD|REGISTER_BROKER_RECORD)","version":(\d)')


def make(server: Server, topic: str) -> None:
    answer = ask(server.address, CreateTopicsRequest([CreatableTopic(topic, 1, 1)], 20_000), CreateTopicsResponse, 7)
    assert answer.topics[0].error_code == 0


def raised(server: Server, level: int) -> int:
    request = UpdateFeaturesRequest(20_000, [FeatureUpdateKey(METADATA_VERSION, level, False, 1)])
    return ask(server.address, request, UpdateFeaturesResponse, 1).error_code


def written(server: Server) -> dict[str, set[str]]:
    """In which versions the log has its records, as Apache Kafka's dump tool says."""
    found: dict[str, set[str]] = {}
    for kind, version in VERSIONS.findall(dumped(server.data / LOG / f"{0:020d}.log")):
        found.setdefault(kind, set()).add(version)
    return found


@pytest.mark.parametrize(("release", "level", "versions"), [("3.9", 21, {"1"}), ("4.0", 25, {"2"})])
def test_an_older_level_is_served_and_raised(tmp_path: Path, release: str, level: int, versions: set[str]) -> None:
    kafka = start_apache_kafka(tmp_path / "kafka", release=release)
    make(kafka, "of-kafka")
    kafka.stop()
    program = start_kavka(tmp_path / "kavka")
    program.stop()
    kavka = swapped(kafka, program)
    kavka.start()
    make(kavka, "of-kavka")
    assert kavka.stop() == 0
    assert image(kavka).features.levels[METADATA_VERSION] == level
    assert written(kafka) == {"PARTITION_RECORD": versions, "REGISTER_BROKER_RECORD": {"3"}}
    kafka.start()
    make(kafka, "of-kafka-again")
    kafka.stop()
    kavka.start()
    assert raised(kavka, 30) == 0
    make(kavka, "of-kavka-again")
    assert kavka.stop() == 0
    assert image(kavka).features.levels[METADATA_VERSION] == 30
    assert written(kafka)["PARTITION_RECORD"] == versions | {"2"}
    kafka.start()
    kafka.stop()
    assert list(image(kavka).topics.names()) == ["of-kafka", "of-kafka-again", "of-kavka", "of-kavka-again"]
