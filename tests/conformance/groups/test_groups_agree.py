"""Groups that Kavka and Apache Kafka answer alike: while they rebalance, and where a record would be too large."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kavka_broker.protocol.messages.create_topics_response import CreateTopicsResponse
from kavka_broker.protocol.messages.delete_groups_request import DeleteGroupsRequest
from kavka_broker.protocol.messages.delete_groups_response import DeleteGroupsResponse
from kavka_broker.protocol.messages.describe_groups_request import DescribeGroupsRequest
from kavka_broker.protocol.messages.describe_groups_response import DescribedGroup, DescribeGroupsResponse
from kavka_broker.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from kavka_broker.protocol.messages.find_coordinator_response import FindCoordinatorResponse
from kavka_broker.protocol.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from kavka_broker.protocol.messages.join_group_response import JoinGroupResponse
from kavka_broker.protocol.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kavka_broker.protocol.messages.offset_commit_response import OffsetCommitResponse
from kavka_broker.protocol.messages.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment
from kavka_broker.protocol.messages.sync_group_response import SyncGroupResponse
from tests.support.asking import ask, ask_on
from tests.support.both import Both, running_both
from tests.support.servers import Server
from tests.support.wire import Connection

pytestmark = [pytest.mark.java, pytest.mark.slow]

SECONDS_MAX = 60.0
SESSION_MS, REBALANCE_MS = 60_000, 120_000  # nobody is missed: members of this kind send no heartbeats
SUBSCRIPTION = b"\x00\x00\x00\x00\x00\x01\x00\x01t\xff\xff\xff\xff"
PARTITIONS = 100
LONG = 20_000  # of a group's name, which is in the key of each of its offsets
RECORD_BYTES_MAX = 1024 * 1024
NOT_YET = (
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    with running_both(tmp_path_factory.mktemp("both"), {"group.initial.rebalance.delay.ms": "0"}) as pair:
        pair.ask(CreateTopicsRequest([CreatableTopic("t", PARTITIONS, 1)]), CreateTopicsResponse)
        yield pair


class Member:
    """One member on a connection of its own."""

    def __init__(self, server: Server, group: str) -> None:
        self.group, self.member_id, self.generation = group, "", -1
        self.connection = Connection(server.address, SECONDS_MAX)
        until_found(server, group)

    def join(self) -> JoinGroupResponse:
        while True:
            protocols = [JoinGroupRequestProtocol("range", SUBSCRIPTION)]
            request = JoinGroupRequest(
                self.group, SESSION_MS, REBALANCE_MS, self.member_id, None, "consumer", protocols
            )
            answer = ask_on(self.connection, request, JoinGroupResponse, 9)
            self.member_id, self.generation = answer.member_id, answer.generation_id
            if answer.error_code not in (*NOT_YET, ErrorCode.MEMBER_ID_REQUIRED):
                assert answer.error_code == ErrorCode.NONE
                return answer

    def sync(self, **assignments: bytes) -> SyncGroupResponse:
        """Hand in these assignments, `mine` for itself."""
        own = [SyncGroupRequestAssignment(self.member_id, assigned) for assigned in assignments.values()]
        request = SyncGroupRequest(self.group, self.generation, self.member_id, None, "consumer", "range", own)
        return ask_on(self.connection, request, SyncGroupResponse, 5)


def until_found(server: Server, group: str) -> None:
    """The first one to ask makes the topic of offsets, and that takes a moment."""
    deadline = time.monotonic() + SECONDS_MAX
    while True:
        request = FindCoordinatorRequest(key_type=0, coordinator_keys=[group])
        (found,) = ask(server.address, request, FindCoordinatorResponse, 6).coordinators
        if found.error_code not in NOT_YET:
            return
        assert time.monotonic() < deadline, found


def described(server: Server, group: str) -> DescribedGroup:
    return ask(server.address, DescribeGroupsRequest([group]), DescribeGroupsResponse, 6).groups[0]


def until_state(server: Server, group: str, state: str, members: int) -> list[tuple[bytes, bytes]]:
    """What each member is said to have subscribed to and to have, once the group is in this state."""
    deadline = time.monotonic() + SECONDS_MAX
    while (seen := described(server, group)).group_state != state or len(seen.members) != members:
        assert time.monotonic() < deadline, seen
    return sorted((member.member_metadata, member.member_assignment) for member in seen.members)


def through_a_rebalance(server: Server) -> list[list[tuple[bytes, bytes]]]:
    """What tools are shown at each step of it."""
    first, second = Member(server, "rebalancing"), Member(server, "rebalancing")
    with first.connection, second.connection, ThreadPoolExecutor() as pool:
        first.join()
        shown = [until_state(server, first.group, "CompletingRebalance", 1)]
        assert first.sync(mine=b"mine").assignment == b"mine"
        shown.append(until_state(server, first.group, "Stable", 1))
        joining = pool.submit(second.join)
        shown.append(until_state(server, first.group, "PreparingRebalance", 2))
        first.join()
        joining.result()
        shown.append(until_state(server, first.group, "CompletingRebalance", 2))
        return shown


def test_owned_partitions_are_shown_while_a_group_rebalances(both: Both) -> None:
    ours, theirs = (through_a_rebalance(server) for server in both)
    assert ours == theirs
    assert [(b"", b""), (b"", b"mine")] in ours


def too_large_a_sync(server: Server) -> tuple[int, str, list[bytes]]:
    member = Member(server, "large")
    with member.connection:
        member.join()
        said = member.sync(mine=b"x" * RECORD_BYTES_MAX)
        seen = described(server, member.group)
        return said.error_code, seen.group_state, [one.member_assignment for one in seen.members]


def test_an_assignment_that_no_record_can_hold(both: Both) -> None:
    ours, theirs = (too_large_a_sync(server) for server in both)
    assert ours == theirs
    assert ours[0] == ErrorCode.UNKNOWN_SERVER_ERROR


def committed(server: Server, group: str, first: int, count: int) -> set[int]:
    partitions = [OffsetCommitRequestPartition(first + index, 1, committed_metadata="") for index in range(count)]
    request = OffsetCommitRequest(group, -1, "", topics=[OffsetCommitRequestTopic("t", partitions=partitions)])
    while True:
        (topic,) = ask(server.address, request, OffsetCommitResponse, 8).topics
        codes = {partition.error_code for partition in topic.partitions}
        if not codes & {*NOT_YET}:
            return codes


def too_much_at_once(server: Server) -> tuple[set[int], list[int]]:
    """What a commit, and a deletion, of more than a batch may hold are answered."""
    group = "g" * LONG
    until_found(server, group)
    at_once = committed(server, group, 0, PARTITIONS)
    for first in range(0, PARTITIONS, 20):
        assert committed(server, group, first, 20) == {ErrorCode.NONE}
    results = ask(server.address, DeleteGroupsRequest([group]), DeleteGroupsResponse, 2).results
    return at_once, [result.error_code for result in results]


def test_offsets_that_no_batch_can_hold(both: Both) -> None:
    ours, theirs = (too_much_at_once(server) for server in both)
    assert ours == theirs
    assert ours == ({ErrorCode.UNKNOWN_SERVER_ERROR}, [ErrorCode.UNKNOWN_SERVER_ERROR])
