"""JoinGroups that wait for a rebalance leave room in `queued.max.request.bytes`, as Apache Kafka's do."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from kavka_broker.protocol.codec import encode
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.framing import RequestHeader, encode_request_header
from kavka_broker.protocol.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from kavka_broker.protocol.messages.join_group_response import JoinGroupResponse
from tests.conformance.groups.test_groups_agree import REBALANCE_MS, SESSION_MS, Member, until_found, until_state
from tests.support.asking import ask
from tests.support.both import Both, running_both
from tests.support.servers import Server
from tests.support.wire import Connection

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.extended]

LARGE_BYTES = 100_000
BOUND_BYTES = 2 * LARGE_BYTES
VERSION = 3  # the last in which the first join of a member counts


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    settings = {
        "group.initial.rebalance.delay.ms": "0",
        "queued.max.request.bytes": str(BOUND_BYTES),
        "socket.request.max.bytes": str(BOUND_BYTES),
    }
    with running_both(tmp_path_factory.mktemp("both"), settings) as pair:
        yield pair


def large_join(group: str) -> JoinGroupRequest:
    protocols = [JoinGroupRequestProtocol("range", bytes(LARGE_BYTES))]
    return JoinGroupRequest(group, SESSION_MS, REBALANCE_MS, "", None, "consumer", protocols)


def send(server: Server, request: JoinGroupRequest) -> Connection:
    connection = Connection(server.address)
    connection.send_frame(encode_request_header(RequestHeader(11, VERSION, 7, "large")) + encode(request, VERSION))
    return connection


def beside_many_that_wait(server: Server) -> int:
    """What another group's member is answered, whose request is as large."""
    first = Member(server, "waiting")
    with first.connection, ExitStack() as stack:
        first.join()
        first.sync(mine=b"mine")
        for count in range(2, 2 + 2 * BOUND_BYTES // LARGE_BYTES):
            stack.enter_context(send(server, large_join("waiting")))
            until_state(server, "waiting", "PreparingRebalance", count)
        until_found(server, "other")
        return ask(server.address, large_join("other"), JoinGroupResponse, VERSION).error_code


def test_a_member_that_waits_for_a_rebalance_holds_no_other_up(both: Both) -> None:
    assert [beside_many_that_wait(server) for server in both] == [ErrorCode.NONE, ErrorCode.NONE]
