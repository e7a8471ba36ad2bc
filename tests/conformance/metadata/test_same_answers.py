"""Administration that Kavka and Apache Kafka answer alike: what may be altered to what, whole replacements, ACLs,
elections.

Both run side by side, and every answer of the one is compared with that of the other.
"""

import time
from collections.abc import Iterator

import pytest
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from kavka_broker.core.config.broker import KAVKA_KEYS, KEYS
from kavka_broker.core.config.definition import Mode
from kavka_broker.core.config.dynamic import READ_AT_START
from kavka_broker.core.config.group_table import GROUP_KEYS
from kavka_broker.core.config.topic_table import RATE_KEYS, TOPIC_KEYS
from kavka_broker.core.config.unserved_configs import PROMISES
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages import alter_configs_request as replacing
from kavka_broker.protocol.messages import incremental_alter_configs_request as altering
from kavka_broker.protocol.messages.alter_configs_response import AlterConfigsResponse
from kavka_broker.protocol.messages.create_acls_request import AclCreation, CreateAclsRequest
from kavka_broker.protocol.messages.create_acls_response import CreateAclsResponse
from kavka_broker.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kavka_broker.protocol.messages.create_topics_response import CreateTopicsResponse
from kavka_broker.protocol.messages.delete_acls_request import DeleteAclsFilter, DeleteAclsRequest
from kavka_broker.protocol.messages.delete_acls_response import DeleteAclsResponse
from kavka_broker.protocol.messages.describe_acls_request import DescribeAclsRequest
from kavka_broker.protocol.messages.describe_acls_response import DescribeAclsResponse
from kavka_broker.protocol.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from kavka_broker.protocol.messages.elect_leaders_response import ElectLeadersResponse, ReplicaElectionResult
from kavka_broker.protocol.messages.incremental_alter_configs_response import IncrementalAlterConfigsResponse
from tests.support.asking import ask_on
from tests.support.both import Both, running_both
from tests.support.programs import run
from tests.support.servers import Server
from tests.support.wire import Connection
from tools.ktool import command

Values = dict[str, str | None]

pytestmark = [pytest.mark.java, pytest.mark.slow]

TOPIC, BROKER, GROUP = 2, 4, 32
SET, DELETE = 0, 1
SECONDS_MAX = 60.0
VALUES = (
    "0", "-1", "1", "16", "+5", "1048576", "2147483647", "9223372036854775807", "", "true", "nan", "NaN",
    "0.5", "10d", "0:1", "x:y", "compact,,delete", "latest", "by_duration:PT1H", "by_duration:1h",
)  # fmt: skip
#: Where Kavka is stricter on purpose: it refuses what it would not do.
STRICTER = {*PROMISES, *READ_AT_START}


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    with running_both(tmp_path_factory.mktemp("both")) as pair:
        pair.ask(CreateTopicsRequest([CreatableTopic("t", 1, 1)]), CreateTopicsResponse)
        yield pair


def codes(server: Server, kind: int, name: str, keys: list[str], value: str) -> dict[str, ErrorCode]:
    """What each key may be altered to, asked one by one, with nothing changed."""
    said = {}
    with Connection(server.address) as connection:
        for key in keys:
            resource = altering.AlterConfigsResource(kind, name, [altering.AlterableConfig(key, SET, value)])
            request = altering.IncrementalAlterConfigsRequest([resource], True)
            (answer,) = ask_on(connection, request, IncrementalAlterConfigsResponse, 0).responses
            said[key] = ErrorCode(answer.error_code)
    return said


RESOURCES = {
    "topic": (TOPIC, "t", sorted(TOPIC_KEYS.keys() - RATE_KEYS)),
    "group": (GROUP, "g", list(GROUP_KEYS)),
    "broker": (BROKER, "1", [name for name, one in KEYS.items() if one.mode is not Mode.READ_ONLY]),
    "all brokers": (BROKER, "", [name for name, one in KEYS.items() if one.mode is Mode.CLUSTER_WIDE]),
}


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("resource", RESOURCES)
def test_what_a_config_may_be_altered_to(both: Both, resource: str, value: str) -> None:
    kind, name, keys = RESOURCES[resource]
    asked = [key for key in keys if key not in STRICTER and key not in KAVKA_KEYS]
    ours, theirs = (codes(server, kind, name, asked, value) for server in (both.kavka, both.kafka))
    assert {key: code for key, code in ours.items() if code != theirs[key]} == {}, theirs


def test_what_is_stricter_here_is_still_refused_with_a_code_of_kafkas(both: Both) -> None:
    asked = [key for key in RESOURCES["broker"][2] if key in STRICTER and not key.endswith((".passphrase", ".secret"))]
    assert len(asked) > 20
    refused = codes(both.kavka, BROKER, "1", asked, "something")
    assert set(refused.values()) == {ErrorCode.INVALID_REQUEST}


REPLACED: dict[str, Values] = {
    "set": {"retention.ms": "60000", "segment.ms": "5000"},
    "one left out goes back": {"retention.ms": "60000"},
    "all left out": {},
    "a bad value changes nothing": {"retention.ms": "abc"},
    "an unknown key": {"nope": "1"},
    "no value": {"retention.ms": None},
}


@pytest.mark.parametrize("version", [0, 1, 2])
@pytest.mark.parametrize("kind", [TOPIC, BROKER, GROUP, 8, 99])
def test_alter_configs_replaces_all(both: Both, kind: int, version: int) -> None:
    topics: list[Values] = list(REPLACED.values())
    brokers: list[Values] = [{"log.retention.ms": "60000"}, {"node.id": "7"}, {}, {"log.retention.ms": None}]
    groups: list[Values] = [{"consumer.session.timeout.ms": "50000"}, {"consumer.session.timeout.ms": "1"}, {}]
    for name in {TOPIC: ("t", "missing", ""), BROKER: ("1", ""), GROUP: ("g",)}.get(kind, ("1",)):
        for values in {TOPIC: topics, BROKER: brokers, GROUP: groups}.get(kind, brokers[:1]):
            given = [replacing.AlterableConfig(*item) for item in values.items()]
            request = replacing.AlterConfigsRequest([replacing.AlterConfigsResource(kind, name, given)])
            ours, theirs = both.ask(request, AlterConfigsResponse, version)
            assert [response.error_code for response in ours.responses] == [
                response.error_code for response in theirs.responses
            ], values
            soon_alike(both)


def test_a_key_that_is_there_twice(both: Both) -> None:
    twice = [replacing.AlterableConfig("retention.ms", value) for value in ("500000", "600000")]
    request = replacing.AlterConfigsRequest([replacing.AlterConfigsResource(TOPIC, "t", twice)])
    answers = both.ask(request, AlterConfigsResponse)
    assert len({answer.responses[0].error_code for answer in answers}) == 1
    soon_alike(both)


def soon_alike(both: Both) -> None:
    """A broker shows what was altered once it has followed its controller."""
    deadline = time.monotonic() + SECONDS_MAX
    while altered(both.kavka) != altered(both.kafka):
        assert time.monotonic() < deadline, (altered(both.kavka), altered(both.kafka))


def altered(server: Server) -> dict[str, dict[str, str | None]]:
    """What is configured of topic t and of all brokers, as librdkafka describes it."""
    admin = AdminClient({"bootstrap.servers": server.bootstrap})
    found = {}
    for resource in (ConfigResource(ResourceType.TOPIC, "t"), ConfigResource(ResourceType.BROKER, "1")):
        values = admin.describe_configs([resource])[resource].result(SECONDS_MAX)
        found[resource.name] = {key: one.value for key, one in values.items() if one.source in (1, 2, 3)}
    return found


def test_librdkafka_alters_configs_as_it_always_did(both: Both) -> None:
    for server in (both.kavka, both.kafka):
        admin = AdminClient({"bootstrap.servers": server.bootstrap})
        for config in ({"retention.ms": "60000"}, {"segment.ms": "7000"}):
            resource = ConfigResource(ResourceType.TOPIC, "t", set_config=config)
            with pytest.warns(DeprecationWarning, match="alter_configs"):
                admin.alter_configs([resource])[resource].result(SECONDS_MAX)
    soon_alike(both)
    assert altered(both.kavka)["t"]["segment.ms"] == "7000"


@pytest.mark.parametrize("version", [1, 2, 3])
def test_acls_are_refused_alike_without_an_authorizer(both: Both, version: int) -> None:
    rule = AclCreation(2, "t", 3, "User:a", "*", 3, 3)
    ours, theirs = both.ask(DescribeAclsRequest(1, None, 1, None, None, 1, 1), DescribeAclsResponse, version)
    assert (ours.error_code, ours.error_message) == (theirs.error_code, theirs.error_message)
    assert ours.error_code == ErrorCode.SECURITY_DISABLED
    made = both.ask(CreateAclsRequest([rule, rule]), CreateAclsResponse, version)
    assert len({tuple((result.error_code, result.error_message) for result in answer.results) for answer in made}) == 1
    wanted = DeleteAclsFilter(2, "t", 3, None, None, 1, 1)
    gone = both.ask(DeleteAclsRequest([wanted]), DeleteAclsResponse, version)
    assert (
        len({tuple((result.error_code, result.error_message) for result in answer.filter_results) for answer in gone})
        == 1
    )


def test_kafka_acls_says_why(both: Both) -> None:
    arguments = ("--add", "--allow-principal", "User:a", "--operation", "Read", "--topic", "t")
    for options in (("--list",), arguments):
        said = []
        for server in (both.kavka, both.kafka):
            with pytest.raises(AssertionError, match="SecurityDisabled") as failed:
                run(command("acls", "--bootstrap-server", server.bootstrap, *options))
            said.append("No Authorizer is configured" in str(failed.value))
        assert said == [True, True]


@pytest.mark.parametrize("version", [0, 1, 2])
@pytest.mark.parametrize("kind", [0, 1, 2, 127])
def test_elections_that_are_not_held(both: Both, kind: int, version: int) -> None:
    asked = [TopicPartitions("t", [0, 7]), TopicPartitions("missing", [0])]
    request = ElectLeadersRequest(kind if version else 0, asked)
    ours, theirs = both.ask(request, ElectLeadersResponse, version)
    assert ours.error_code == theirs.error_code
    assert codes_of(ours.replica_election_results) == codes_of(theirs.replica_election_results)


def codes_of(results: list[ReplicaElectionResult]) -> dict[tuple[str, int], int]:
    return {
        (result.topic, part.partition_id): part.error_code for result in results for part in result.partition_result
    }
