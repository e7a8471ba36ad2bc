"""Cordoned log directories (KIP-1066): Kavka and Apache Kafka take and refuse the same, and place alike."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from kavka_broker.protocol.messages.alter_replica_log_dirs_request import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from kavka_broker.protocol.messages.alter_replica_log_dirs_response import AlterReplicaLogDirsResponse
from kavka_broker.protocol.messages.create_partitions_request import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from kavka_broker.protocol.messages.create_partitions_response import CreatePartitionsResponse
from kavka_broker.protocol.messages.create_topics_request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
)
from kavka_broker.protocol.messages.create_topics_response import CreateTopicsResponse
from kavka_broker.protocol.messages.describe_log_dirs_request import DescribeLogDirsRequest
from kavka_broker.protocol.messages.describe_log_dirs_response import DescribeLogDirsResponse
from kavka_broker.protocol.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kavka_broker.protocol.messages.incremental_alter_configs_response import IncrementalAlterConfigsResponse
from tests.support.asking import ask
from tests.support.servers import Server, start_apache_kafka, start_kavka
from tests.support.waiting import until_outside

pytestmark = pytest.mark.java

KEY = "cordoned.log.dirs"
SET, DELETE, APPEND, SUBTRACT = range(4)
BROKER = 4
TIMEOUT_MS = 10_000


@contextmanager
def both_products(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Server]]:
    """Kavka and Apache Kafka, with the log directories a and b each."""
    found = []
    with ExitStack() as stack:
        for start in (start_kavka, start_apache_kafka):
            directory = tmp_path_factory.mktemp("cordoned")
            server = start(directory, {"log.dirs": ",".join(str(directory / name) for name in "ab")})
            stack.callback(server.kill)
            found.append(server)
        yield found


@pytest.fixture
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Server]]:
    with both_products(tmp_path_factory) as found:
        yield found


def path(server: Server, names: str) -> str:
    """The value of the key for directories of these names."""
    return ",".join(name if name in ("*", "") else str(server.directory / name) for name in names.split(","))


def alter(server: Server, names: str, operation: int = SET, broker: str = "1") -> int:
    config = AlterableConfig(KEY, operation, path(server, names))
    request = IncrementalAlterConfigsRequest([AlterConfigsResource(BROKER, broker, [config])])
    return int(ask(server.address, request, IncrementalAlterConfigsResponse).responses[0].error_code)


def cordoned(server: Server) -> str:
    found = ask(server.address, DescribeLogDirsRequest(None), DescribeLogDirsResponse, 5).results
    return "".join(sorted(found_one.log_dir[-1] for found_one in found if found_one.is_cordoned))


def until_cordoned(server: Server, names: str) -> None:
    until_outside(lambda: cordoned(server) == names)


def homes(server: Server, topic: str) -> dict[str, int]:
    """How many partitions of a topic there are in each directory."""
    found = ask(server.address, DescribeLogDirsRequest(None), DescribeLogDirsResponse, 5).results
    counts = {one.log_dir[-1]: sum(len(of.partitions) for of in one.topics if of.name == topic) for one in found}
    return dict(sorted(counts.items()))


def create(server: Server, topic: str, partitions: int = 4, brokers: list[int] | None = None) -> int:
    if brokers is None:
        wanted = CreatableTopic(topic, partitions, 1, [], [])
    else:
        wanted = CreatableTopic(topic, -1, -1, [CreatableReplicaAssignment(0, brokers)], [])
    answer = ask(server.address, CreateTopicsRequest([wanted], TIMEOUT_MS, validate_only=False), CreateTopicsResponse)
    return int(answer.topics[0].error_code)


def until_heard(server: Server, *, is_full: bool) -> None:
    """Wait until the controller, which a heartbeat tells, places nothing on the broker, or something again."""

    def is_refused() -> bool:
        wanted = CreateTopicsRequest([CreatableTopic("probe", 1, 1, [], [])], TIMEOUT_MS, validate_only=True)
        return ask(server.address, wanted, CreateTopicsResponse).topics[0].error_code != 0

    until_outside(lambda: is_refused() is is_full)


def grow(server: Server, topic: str, count: int, brokers: list[int] | None = None) -> int:
    assignments = None if brokers is None else [CreatePartitionsAssignment(brokers)]
    request = CreatePartitionsRequest([CreatePartitionsTopic(topic, count, assignments)], TIMEOUT_MS, False)
    return int(ask(server.address, request, CreatePartitionsResponse).results[0].error_code)


def move(server: Server, topic: str, name: str) -> int:
    request = AlterReplicaLogDirsRequest(
        [AlterReplicaLogDir(path(server, name), [AlterReplicaLogDirTopic(topic, [0])])]
    )
    answer = ask(server.address, request, AlterReplicaLogDirsResponse)
    return int(answer.results[0].partitions[0].error_code)


def test_new_replicas_go_elsewhere_and_what_is_there_stays(both: list[Server]) -> None:
    told: list[list[Any]] = []
    for server in both:
        said: list[Any] = [create(server, "before")]
        until_outside(lambda server=server: sum(homes(server, "before").values()) == 4)  # type: ignore[misc]
        said.append(alter(server, "a"))
        until_cordoned(server, "a")
        was = homes(server, "before")
        said.append(create(server, "x"))
        until_outside(lambda server=server: sum(homes(server, "x").values()) == 4)  # type: ignore[misc]
        said += [homes(server, "x"), homes(server, "before") == was, move(server, "x", "a")]
        server.stop()
        server.start()
        until_cordoned(server, "a")
        said += [create(server, "z", 2), alter(server, "", DELETE)]
        until_cordoned(server, "")
        said.append(move(server, "x", "a"))
        told.append(said)
    kavka, kafka = told
    assert kavka == kafka
    assert kavka[3] == {"a": 0, "b": 4}


def test_a_broker_that_is_cordoned_is_given_nothing(both: list[Server]) -> None:
    told: list[list[Any]] = []
    for server in both:
        said: list[Any] = [create(server, "x"), alter(server, "*")]
        until_cordoned(server, "ab")
        until_heard(server, is_full=True)
        said += [create(server, "y"), grow(server, "x", 5)]
        said.append(alter(server, "b"))
        until_cordoned(server, "b")
        until_heard(server, is_full=False)
        said += [create(server, "y"), grow(server, "x", 5)]
        told.append(said)
    kavka, kafka = told
    assert kavka == kafka


def test_nor_where_it_is_named(both: list[Server]) -> None:
    """Apache Kafka 4.3.1 looks only where it chooses brokers itself; its next version refuses too (KAFKA-20832)."""
    kavka, _ = both
    assert (create(kavka, "x"), alter(kavka, "*")) == (0, 0)
    until_heard(kavka, is_full=True)
    assert create(kavka, "y", brokers=[1]) == 39
    assert grow(kavka, "x", 5, [1]) == 39


@pytest.mark.parametrize(
    ("names", "operation", "broker"),
    [
        ("c", SET, "1"), ("a,c", SET, "1"), ("*,a", SET, "1"), ("a,a", SET, "1"), ("", SET, "1"), ("a", SET, ""),
        ("*", SET, ""), ("a", APPEND, "1"), ("c", APPEND, "1"), ("c", SUBTRACT, "1"), ("", DELETE, ""),
    ],
)  # fmt: skip
def test_values_are_taken_and_refused_alike(shared: list[Server], names: str, operation: int, broker: str) -> None:
    kavka, kafka = (alter(server, names, operation, broker) for server in shared)
    assert kavka == kafka
    assert [cordoned(server) for server in shared if alter(server, "", DELETE) == 0] != []


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Server]]:
    with both_products(tmp_path_factory) as found:
        yield found
