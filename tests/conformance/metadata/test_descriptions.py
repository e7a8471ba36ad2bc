"""DescribeConfigs of Kavka and of Apache Kafka, value by value: what holds, where from, and what it stands before."""

from collections.abc import Callable
from pathlib import Path

import pytest

from kavka_broker.core.config.broker import KAVKA_KEYS
from kavka_broker.core.config.dynamic import READ_AT_START
from kavka_broker.core.config.topic_table import RATE_KEYS
from kavka_broker.protocol.messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from kavka_broker.protocol.messages.describe_configs_response import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from tests.conformance.metadata.filling import fill
from tests.conformance.metadata.newer_keys import NEWER_KEYS
from tests.support.asking import ask
from tests.support.servers import Server, start_apache_kafka, start_kavka
from tests.support.waiting import until_outside

pytestmark = [pytest.mark.java, pytest.mark.slow]

TOPIC, BROKER, GROUP = 2, 4, 32
RESOURCES = [(TOPIC, "flights"), (BROKER, "1"), (BROKER, ""), (GROUP, "g")]
SETTINGS = {
    "log.retention.hours": "48",
    "num.partitions": "3",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "some.plugin.key": "7",
}
#: Where the two servers have to differ: their addresses and directories. And Apache Kafka forgets the file's
#: log.retention.hours once log.retention.ms is altered: it shows the default as the value, and the file as its source.
OWN = (
    {"listeners", "controller.quorum.bootstrap.servers", "log.dirs", "log.retention.hours"}
    | NEWER_KEYS
    | KAVKA_KEYS.keys()
    | RATE_KEYS
)

#: What `fill` alters. A broker shows it once it has followed its controller.
ALTERED = {
    (TOPIC, "flights", "retention.ms"): "3600000",
    (TOPIC, "flights", "cleanup.policy"): "compact",
    (BROKER, "1", "log.cleaner.threads"): "2",
    (BROKER, "1", "log.retention.ms"): "7200000",
    (BROKER, "", "log.retention.ms"): "7200000",
}

Starter = Callable[[Path, dict[str, str]], Server]


def described(start: Starter, directory: Path) -> dict[tuple[int, str], dict[str, object]]:
    server = start(directory, SETTINGS)
    found: list[DescribeConfigsResult] = []

    def is_altered() -> bool:
        wanted = [DescribeConfigsResource(kind, name, None) for kind, name in RESOURCES]
        found[:] = ask(server.address, DescribeConfigsRequest(wanted, True), DescribeConfigsResponse).results
        values = {
            (one.resource_type, one.resource_name, each.name): each.value for one in found for each in one.configs
        }
        return values.items() >= ALTERED.items()

    try:
        fill(server.address)
        until_outside(is_altered)
    finally:
        server.stop()
    return {
        (result.resource_type, result.resource_name): {
            config.name: facts(config) for config in result.configs if config.name not in OWN
        }
        for result in found
    }


def facts(one: DescribeConfigsResourceResult) -> object:
    synonyms = [(said.source, said.name, said.value) for said in one.synonyms]
    is_read_only = one.read_only or one.name in READ_AT_START  # Kavka takes no change of those, and says so
    return (one.value, one.config_source, is_read_only, one.is_sensitive, one.config_type, synonyms)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[tuple[int, str], dict[str, object]], ...]:
    directory = tmp_path_factory.mktemp("descriptions")
    return described(start_kavka, directory / "kavka"), described(start_apache_kafka, directory / "kafka")


@pytest.mark.parametrize("resource", RESOURCES)
def test_every_config_is_described_as_kafka_does(
    both: tuple[dict[tuple[int, str], dict[str, object]], ...], resource: tuple[int, str]
) -> None:
    ours, theirs = (server[resource] for server in both)
    assert ours.keys() == theirs.keys()
    assert {name: value for name, value in ours.items() if value != theirs[name]} == {}
