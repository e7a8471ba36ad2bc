"""Quotas of oddly named entities: what Kafka's tool sets on Kavka and ours on Apache Kafka, both tools show alike."""

import os
from collections.abc import Iterator
from contextlib import closing

import pytest

from kavka_broker.core.quota.entity import Entity
from kavka_operator.domain.plan import AlterQuota
from kavka_operator.kafka.client import KafkaClient
from kavka_operator.kafka.offsets_and_lag import Onlooker
from tests.support.both import Both, running_both
from tests.support.programs import run
from tests.support.servers import Server
from tests.support.waiting import until_outside
from tools.ktool import command

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.extended]

NAMES = ("default", "<default>", "CN=a b,OU='c'", "a=b/c%2F", "żółw 日本", "x" * 249)
KEY = "producer_byte_rate"
BOTH_TYPES = ("--entity-type", "users", "--entity-type", "clients")


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    with running_both(tmp_path_factory.mktemp("both")) as pair:
        yield pair


def configs(server: Server, *arguments: str) -> str:
    """Run kafka-configs where names are what they are in UTF-8."""
    line = command("configs", "--bootstrap-server", server.bootstrap, *arguments)
    line[1:1] = ["-Dstdout.encoding=UTF-8"]
    return run(line, env={**os.environ, "LC_ALL": "C.UTF-8"})


def entity(name: str) -> tuple[str, ...]:
    """The user of this name with the client of this name."""
    return ("--entity-type", "users", "--entity-name", name, "--entity-type", "clients", "--entity-name", name)


def quotas(server: Server) -> dict[tuple[object, object], float]:
    """What our tools see."""
    with closing(Onlooker(server.bootstrap)) as client:
        seen = client.quotas()
    return {(one.user, one.client_id): limits[KEY] for one, limits in seen.items() if isinstance(one, Entity)}


def test_each_tool_shows_what_the_other_has_set(both: Both) -> None:
    wanted = {(name, name): float(number) for number, name in enumerate(NAMES, 1)}
    with closing(KafkaClient(both.kafka.bootstrap)) as ours:
        for (name, _), limit in wanted.items():
            configs(both.kavka, "--alter", *entity(name), "--add-config", f"{KEY}={limit}")
            ours.perform(AlterQuota(Entity(name, name), {KEY: limit}))
    until_outside(lambda: all(quotas(server) == wanted for server in both))

    shown, by_kafka = (sorted(configs(server, "--describe", *BOTH_TYPES).splitlines()) for server in both)
    assert shown == by_kafka
    assert len(shown) == len(NAMES)
    for name in NAMES:
        assert any(f"user-principal '{name}', client-id '{name}'" in line for line in shown), (name, shown)
