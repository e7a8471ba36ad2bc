"""Rules and filters without sense: Kavka and Apache Kafka refuse the same ones, and say so in the same words."""

from collections.abc import Iterator

import pytest

from kavka_broker.core.authorization.settings import STANDARD
from kavka_broker.protocol.errors import ErrorCode as E
from kavka_broker.protocol.messages.create_acls_request import AclCreation, CreateAclsRequest
from kavka_broker.protocol.messages.create_acls_response import CreateAclsResponse
from kavka_broker.protocol.messages.delete_acls_request import DeleteAclsFilter, DeleteAclsRequest
from kavka_broker.protocol.messages.delete_acls_response import DeleteAclsResponse
from kavka_broker.protocol.messages.describe_acls_request import DescribeAclsRequest
from kavka_broker.protocol.messages.describe_acls_response import DescribeAclsResponse
from tests.support.asking import ask
from tests.support.both import Both, running_both
from tests.support.servers import Server
from tests.support.waiting import until_outside

pytestmark = [pytest.mark.java, pytest.mark.slow]

GOOD = (2, "t", 3, "User:a", "*", 3, 3)
EVERY = (1, None, 1, None, None, 1, 1)
#: Kavka refuses networks that are none; Apache Kafka 4.3 takes every host.
RULES = {
    "good": GOOD,
    "of everybody": (2, "*", 3, "User:*", "*", 2, 2),
    "the cluster": (4, "kafka-cluster", 3, "User:a", "*", 9, 3),
    "another cluster": (4, "mine", 3, "User:a", "*", 9, 3),
    "prefixed cluster": (4, "kafka-cluster", 4, "User:a", "*", 9, 3),
    "empty name": (2, "", 3, "User:a", "*", 3, 3),
    "no colon": (2, "t", 3, "a", "*", 3, 3),
    "empty host": (2, "t", 3, "User:a", "", 3, 3),
    "odd operation": (3, "g", 3, "User:a", "*", 5, 3),
    "any type": (1, "t", 3, "User:a", "*", 3, 3),
    "any pattern": (2, "t", 1, "User:a", "*", 3, 3),
    "match": (2, "t", 2, "User:a", "*", 3, 3),
    "any operation": (2, "t", 3, "User:a", "*", 1, 3),
    "any permission": (2, "t", 3, "User:a", "*", 3, 1),
    "unknown type": (0, "t", 3, "User:a", "*", 3, 3),
    "unknown operation": (2, "t", 3, "User:a", "*", 77, 3),
}
LAST = (2, "t", 4, "User:b", "10.0.0.1", 4, 2)
THREE = (GOOD, (2, "*", 3, "User:b", "*", 4, 2), LAST)
NONE: object = (E.NONE, set[object]())  # what describes no rule
FILTERS = {
    "every": EVERY,
    "by name": (1, "t", 1, None, None, 1, 1),
    "match": (2, "t", 2, None, None, 1, 1),
    "literal": (2, None, 3, None, None, 1, 1),
    "prefixed": (2, None, 4, None, None, 1, 1),
    "exact": GOOD,
    "of nobody": (1, None, 1, "User:z", None, 1, 1),
    "empty name": (2, "", 3, None, None, 1, 1),
    "unknown type": (0, None, 1, None, None, 1, 1),
    "unknown permission": (1, None, 1, None, None, 1, 0),
}


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    settings = {"authorizer.class.name": STANDARD, "super.users": "User:ANONYMOUS"}
    with running_both(tmp_path_factory.mktemp("both"), settings) as pair:
        yield pair


#: Apache Kafka answers UNKNOWN_SERVER_ERROR, to all rules of the request.
UNHANDLED = ("any type", "any pattern", "match", "any operation", "any permission")


def created(server: Server, *rules: tuple[object, ...]) -> list[tuple[int, str | None]] | None:
    request = CreateAclsRequest([AclCreation(*rule) for rule in rules])  # type: ignore[arg-type]
    try:
        answer = ask(server.address, request, CreateAclsResponse)
    except ConnectionResetError:
        return None
    return [(result.error_code, result.error_message) for result in answer.results]


@pytest.mark.parametrize("name", RULES)
def test_a_rule_is_created_or_refused_alike(both: Both, name: str) -> None:
    ours, theirs = (created(server, RULES[name], GOOD) for server in both)
    if ours is None or theirs is None:
        assert ours is theirs
    elif theirs[0][0] == E.UNKNOWN_SERVER_ERROR:
        assert name in UNHANDLED
        assert [code for code, _ in ours] == [E.INVALID_REQUEST, E.NONE]
    else:
        assert [code for code, _ in ours] == [code for code, _ in theirs]
        assert all((mine or "").startswith(words or "") for (_, mine), (_, words) in zip(ours, theirs, strict=True))


@pytest.mark.parametrize("name", FILTERS)
def test_a_filter_selects_and_deletes_alike(both: Both, name: str) -> None:
    outcomes = []
    for server in both:
        # Apache Kafka's broker hears of rules a little after its controller has answered, of one after the other.
        created(server, *THREE)
        until_outside(lambda server=server: described(server, LAST) != NONE)  # type: ignore[misc]
        outcomes.append((described(server, FILTERS[name]), deleted(server, FILTERS[name])))
        deleted(server, EVERY)
        until_outside(lambda server=server: described(server, EVERY) == NONE)  # type: ignore[misc]
    assert outcomes[0] == outcomes[1]


def described(server: Server, chosen: tuple[object, ...]) -> object:
    try:
        answer = ask(server.address, DescribeAclsRequest(*chosen), DescribeAclsResponse)  # type: ignore[arg-type]
    except ConnectionResetError:
        return "closed"
    return answer.error_code, {
        (resource.resource_type, resource.resource_name, resource.pattern_type, repr(rule))
        for resource in answer.resources
        for rule in resource.acls
    }


def deleted(server: Server, chosen: tuple[object, ...]) -> object:
    request = DeleteAclsRequest([DeleteAclsFilter(*chosen)])  # type: ignore[arg-type]
    try:
        answer = ask(server.address, request, DeleteAclsResponse)
    except ConnectionResetError:
        return "closed"
    return [
        (result.error_code, result.error_message, {repr(rule) for rule in result.matching_acls})
        for result in answer.filter_results
    ]
