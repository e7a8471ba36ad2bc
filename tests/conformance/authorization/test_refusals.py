"""A client that may do nothing, and one that may do some things, asks every API of Kavka and of Apache Kafka, and hears
the same errors of both.

Both run side by side with the StandardAuthorizer. Nobody is a super user: rules let everything in from 127.0.0.1, where
the brokers and the tools are, and say nothing of 127.0.0.2, from where the client comes.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import pytest

from kavka_broker.core.authorization.settings import STANDARD
from kavka_broker.core.config.properties import parse_properties
from kavka_broker.dispatch.access.table import GATES
from kavka_broker.dispatch.handlers import load
from kavka_broker.protocol.errors import ErrorCode as E
from kavka_broker.protocol.message import Message, Struct
from kavka_broker.protocol.messages.create_acls_request import AclCreation, CreateAclsRequest
from kavka_broker.protocol.messages.create_acls_response import CreateAclsResponse
from kavka_broker.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kavka_broker.protocol.messages.create_topics_response import CreateTopicsResponse
from kavka_broker.protocol.messages.describe_quorum_request import DescribeQuorumRequest
from kavka_broker.protocol.messages.describe_quorum_response import DescribeQuorumResponse
from kavka_broker.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from kavka_broker.protocol.messages.find_coordinator_response import FindCoordinatorResponse
from kavka_broker.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kavka_broker.protocol.messages.metadata_response import MetadataResponse
from kavka_broker.protocol.messages.offset_commit_response import OffsetCommitResponse
from kavka_broker.protocol.messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest
from kavka_broker.protocol.messages.update_features_response import UpdateFeaturesResponse
from kavka_broker.protocol.uuids import ZERO
from kavka_broker.request.metadata_answers import NOT_ASKED
from tests.conformance.authorization.profiles import PROFILES, address_of, rules_of_profiles
from tests.conformance.authorization.requests import TOPIC, on_broker, on_controller
from tests.support.asking import ask, ask_on
from tests.support.both import Both, running_both
from tests.support.servers import Server
from tests.support.waiting import until_outside
from tests.support.wire import Connection

pytestmark = [pytest.mark.java, pytest.mark.slow]

OPERATIONS = "_authorized_operations"
ELSEWHERE = ("127.0.0.2", 0)
ANY_NAME = {2: "*", 3: "*", 4: "kafka-cluster", 5: "*"}  # by type of resource
RULES = [AclCreation(kind, name, 3, "User:ANONYMOUS", "127.0.0.1", 2, 3) for kind, name in ANY_NAME.items()]


#: What the second client may do: types of resource, names, pattern types, operations, permissions.
SOME = [
    AclCreation(*pattern, "User:*", "127.0.0.2", operation, permission)
    for pattern, operation, permission in (
        ((2, "sec", 4), 3, 3),  # READ topics sec...
        ((2, "secret", 3), 8, 3),  # DESCRIBE topic secret
        ((2, "new", 3), 5, 3),  # CREATE topic new
        ((2, "nowhere", 3), 2, 3),  # ALL of a topic that does not exist,
        ((2, "nowhere", 3), 6, 2),  # except DELETE
        ((3, "g", 3), 8, 3),  # DESCRIBE group g
        ((4, "kafka-cluster", 3), 11, 3),  # ALTER_CONFIGS, and DESCRIBE_CONFIGS with it
    )
]
#: The second client's requests that change something, or are answered by what transactions this version has.
SKIPPED: Final = ("create topics", "alter configs", "incremental alter configs", "alter quotas", "find transaction")
#: Requests of a client with one right that wait for others, concern the quorum, or create a topic after their answer.
SKIPPED_WITH_RIGHTS: Final = ("join group", "unregister broker", "add voter", "remove voter", "metadata by name")
LET_THROUGH: Final = "let through"


@contextmanager
def guarded(directory: Path, rules: list[AclCreation]) -> Iterator[Both]:
    settings = {"authorizer.class.name": STANDARD, "allow.everyone.if.no.acl.found": "true"}
    settings |= {f"share.coordinator.state.topic.{name}": "1" for name in ("replication.factor", "min.isr")}
    with running_both(directory, settings) as pair:
        upgrade = UpdateFeaturesRequest(feature_updates=[FeatureUpdateKey("streams.version", 1)])
        assert not ask(pair.kavka.address, upgrade, UpdateFeaturesResponse).error_code
        pair.ask(CreateTopicsRequest([CreatableTopic(TOPIC, 1, 1)]), CreateTopicsResponse)
        for said in pair.ask(CreateAclsRequest([*rules, *RULES]), CreateAclsResponse):
            assert {result.error_code for result in said.results} == {0}
        for server in pair:
            until_outside(lambda server=server: has_share_states(server))  # type: ignore[misc]
            until_outside(lambda server=server: refused(server))  # type: ignore[misc]
        yield pair


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    with guarded(tmp_path_factory.mktemp("both"), rules_of_profiles()) as pair:
        yield pair


@pytest.fixture(scope="module")
def both_with_some(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    with guarded(tmp_path_factory.mktemp("some"), SOME) as pair:
        yield pair


def has_share_states(server: Server) -> bool:
    """Whether the topic of share coordinators exists, which is created for the first that asks for one."""
    asked = FindCoordinatorRequest(key_type=2, coordinator_keys=["g:AAAAAAAAAAAAAAAAAAAAAQ:0"])
    return not ask(server.address, asked, FindCoordinatorResponse).coordinators[0].error_code


def topic_id(server: Server) -> bytes:
    asked = MetadataRequest([MetadataRequestTopic(name=TOPIC)])
    (topic,) = ask(server.address, asked, MetadataResponse, 12).topics
    return topic.topic_id


def refused(server: Server) -> bool:
    """Whether the rules hold on a broker, and on its controller, which hears of them by itself."""
    with (
        Connection(server.address, source=ELSEWHERE) as connection,
        Connection(controller(server), source=ELSEWHERE) as to_controller,
    ):
        asked = MetadataRequest([MetadataRequestTopic(name="hidden")])
        topic = ask_on(connection, asked, MetadataResponse, 12).topics[0]
        told = ask_on(to_controller, DescribeQuorumRequest(), DescribeQuorumResponse, 1)
    return (topic.error_code, told.error_code) == (E.TOPIC_AUTHORIZATION_FAILED, E.CLUSTER_AUTHORIZATION_FAILED)


def seen(server: Server) -> set[str | None]:
    """The topics that the second client is told of."""
    with Connection(server.address, source=ELSEWHERE) as connection:
        return {topic.name for topic in ask_on(connection, MetadataRequest(None), MetadataResponse, 12).topics}


def answered(address: tuple[str, int], request: Message, version: int, source: tuple[str, int] = ELSEWHERE) -> object:
    """The errors in an answer, by their places; or that the connection was closed."""
    module = import_module(type(request).__module__.replace("_request", "_response"))
    kind = getattr(module, type(request).__name__.replace("Request", "Response"))
    with Connection(address, source=source) as connection:
        try:
            return sorted(errors(ask_on(connection, request, kind, version)))
        except ConnectionResetError:
            return "closed"


def errors(answer: Struct, place: str = "") -> Iterator[tuple[str, Any]]:
    for name in answer.__match_args__:
        value = getattr(answer, name)
        if "error_code" in name or name.endswith(OPERATIONS):
            yield f"{place}{name}", value
        elif isinstance(value, list) and value and isinstance(value[0], Struct):
            for item in value:
                said = getattr(item, "name", None) or getattr(item, "resource_type", "")
                yield from errors(item, f"{place}{name}[{said}].")


@pytest.mark.parametrize("name", sorted(on_broker(b"")))
def test_a_broker_refuses_alike(both: Both, name: str) -> None:
    ours, theirs = (answered(server.address, *on_broker(topic_id(server))[name]) for server in both)
    assert ours == theirs


@pytest.mark.parametrize("name", sorted(set(on_broker(b"")) - set(SKIPPED)))
def test_a_broker_lets_through_alike(both_with_some: Both, name: str) -> None:
    """What is let through is answered by what the server is; that it is let through is the same."""
    ours, theirs = (judged(answered(server.address, *on_broker(topic_id(server))[name])) for server in both_with_some)
    assert ours == theirs
    # A topic that Metadata has made: Apache Kafka answers before it is there, and the next test may list all.
    until_outside(lambda: len({frozenset(seen(server)) for server in both_with_some}) == 1)


@pytest.mark.parametrize("profile", PROFILES)
def test_a_client_with_one_right_is_refused_the_same(both: Both, profile: str) -> None:
    ours, theirs = (refusals_of(server, address_of(profile)) for server in both)
    assert ours == theirs


def refusals_of(server: Server, source: str) -> dict[str, object]:
    """By request, what a client from this address is refused, and what it is told of its rights."""
    refusals = {}
    names = sorted(set(on_broker(b"")) - set(SKIPPED_WITH_RIGHTS), key=lambda name: (name.startswith("delete"), name))
    for name in names:
        if name == names[0] or name.startswith("delete"):
            create_again(server)
        answer = judged(answered(server.address, *on_broker(topic_id(server))[name], source=(source, 0)))
        refusals[name] = {told for told in answer if told[1] != LET_THROUGH} if isinstance(answer, set) else answer
    create_again(server)
    return refusals


def create_again(server: Server) -> None:
    """Create the topic and the group where the right of a client has been used to delete them.

    A broker may show a deleted topic for a moment, and its id with it: where the topic is new, its id is waited for.
    """
    (created,) = ask(server.address, CreateTopicsRequest([CreatableTopic(TOPIC, 1, 1)]), CreateTopicsResponse, 7).topics
    commit, version = on_broker(b"")["offset commit"]
    find, find_version = on_broker(b"")["find groups"]

    def is_there() -> bool:
        ask(server.address, find, FindCoordinatorResponse, find_version)
        (topic,) = ask(server.address, commit, OffsetCommitResponse, version).topics
        known = topic_id(server)
        is_new = created.error_code == E.NONE
        return topic.partitions[0].error_code == E.NONE and (known == created.topic_id if is_new else known != ZERO)

    until_outside(is_there)


def judged(answer: object) -> object:
    """The refusals among the errors of an answer, and the elements that were let through."""
    if not isinstance(answer, list):
        return answer
    refusals = {E.TOPIC_AUTHORIZATION_FAILED, E.GROUP_AUTHORIZATION_FAILED, E.CLUSTER_AUTHORIZATION_FAILED}
    told = {(place, bits) for place, bits in answer if place.endswith(OPERATIONS) and bits != NOT_ASKED}
    return told | {
        (place, code if code in {*refusals, E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED} else LET_THROUGH)
        for place, code in answer
        if not place.endswith(OPERATIONS) and (".partitions" not in place or code in refusals)
    }


def controller(server: Server) -> tuple[str, int]:
    configured = parse_properties((server.directory / "server.properties").read_text())
    return ("127.0.0.1", int(configured["controller.quorum.bootstrap.servers"].rpartition(":")[2]))


@pytest.mark.parametrize("name", sorted(on_controller()))
def test_a_controller_refuses_alike(both: Both, name: str) -> None:
    ours, theirs = (answered(controller(server), *on_controller()[name]) for server in both)
    assert ours == theirs


def test_every_gate_is_asked() -> None:
    asked = {request.API_KEY for request, _ in (*on_broker(b"").values(), *on_controller().values())}
    assert {key for key in load() if GATES[key] is not None} <= asked
