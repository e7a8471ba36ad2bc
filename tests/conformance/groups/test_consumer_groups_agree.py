"""Groups of the new protocol (KIP-848): the same requests to Kavka and to Apache Kafka, the same answers."""

import time
from collections.abc import Iterator
from typing import Any

import pytest

from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from kavka_broker.protocol.messages.consumer_group_describe_response import ConsumerGroupDescribeResponse
from kavka_broker.protocol.messages.consumer_group_heartbeat_request import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)
from kavka_broker.protocol.messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse
from kavka_broker.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kavka_broker.protocol.messages.create_topics_response import CreateTopicsResponse
from kavka_broker.protocol.messages.delete_groups_request import DeleteGroupsRequest
from kavka_broker.protocol.messages.delete_groups_response import DeleteGroupsResponse
from kavka_broker.protocol.messages.describe_groups_request import DescribeGroupsRequest
from kavka_broker.protocol.messages.describe_groups_response import DescribeGroupsResponse
from kavka_broker.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from kavka_broker.protocol.messages.find_coordinator_response import FindCoordinatorResponse
from kavka_broker.protocol.messages.list_groups_request import ListGroupsRequest
from kavka_broker.protocol.messages.list_groups_response import ListGroupsResponse
from kavka_broker.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kavka_broker.protocol.messages.metadata_response import MetadataResponse
from kavka_broker.protocol.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kavka_broker.protocol.messages.offset_commit_response import OffsetCommitResponse
from kavka_broker.protocol.messages.offset_delete_request import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kavka_broker.protocol.messages.offset_delete_response import OffsetDeleteResponse
from kavka_broker.protocol.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from kavka_broker.protocol.messages.offset_fetch_response import OffsetFetchResponse
from tests.support.asking import ask
from tests.support.both import Both, running_both
from tests.support.servers import Server

pytestmark = [pytest.mark.java, pytest.mark.slow]

SECONDS_MAX = 90.0
PARTITIONS = 6
FULL: dict[str, Any] = {"rebalance_timeout_ms": 60_000, "subscribed_topic_names": ["t"], "topic_partitions": []}
NOT_YET = (
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
)
Told = list[tuple[Any, ...]]


class Player:
    """One server, and everything that it has answered, without what is its own (ids of topics)."""

    def __init__(self, server: Server) -> None:
        self.address = server.address
        (topic,) = ask(self.address, MetadataRequest([MetadataRequestTopic(name="t")]), MetadataResponse, 12).topics
        self.topic_id = topic.topic_id
        self.told: Told = []

    def beat(self, group: str, member: str, epoch: int, version: int = 1, owned: Any = None, **fields: Any) -> int:
        """A heartbeat; returns the epoch of the answer."""
        if owned is not None:
            fields["topic_partitions"] = [TopicPartitions(self.topic_id, owned)]
        request = ConsumerGroupHeartbeatRequest(group, member, epoch, **fields)
        told = ask(self.address, request, ConsumerGroupHeartbeatResponse, version)
        assignment = (
            None if told.assignment is None else [topic.partitions for topic in told.assignment.topic_partitions]
        )
        name = ErrorCode(told.error_code).name
        has_interval = told.heartbeat_interval_ms > 0  # Kavka's is shorter in a rebalance (docs/adr/0040)
        self.told.append((name, told.error_message, told.member_epoch, has_interval, assignment))
        return told.member_epoch

    def express(self, group: str, member: str, regex: str, topics: int = 1, **fields: Any) -> int:
        """Subscribe by an expression, and heartbeat until so many topics come of it; returns the epoch. Apache Kafka
        answers before it has matched the expression.
        """
        said = {
            "member_epoch": 0,
            "rebalance_timeout_ms": 60_000,
            "topic_partitions": [],
            "subscribed_topic_regex": regex,
            **fields,
        }
        request = ConsumerGroupHeartbeatRequest(group, member, **said)
        told = ask(self.address, request, ConsumerGroupHeartbeatResponse, 1)
        deadline = time.monotonic() + SECONDS_MAX
        while not told.error_code and (told.assignment is None or len(told.assignment.topic_partitions) != topics):
            assert time.monotonic() < deadline, f"{regex} is not followed: {told}"
            time.sleep(0.1)
            request = ConsumerGroupHeartbeatRequest(group, member, told.member_epoch, topic_partitions=[])
            told = ask(self.address, request, ConsumerGroupHeartbeatResponse, 1)
        partitions = sorted(one.partitions for one in told.assignment.topic_partitions) if told.assignment else None
        self.told.append((ErrorCode(told.error_code).name, partitions))
        return told.member_epoch

    def describe(self, group: str) -> None:
        request = ConsumerGroupDescribeRequest([group], include_authorized_operations=True)
        (told,) = ask(self.address, request, ConsumerGroupDescribeResponse, 1).groups
        members = sorted(
            (
                *(one.member_id, one.instance_id, one.rack_id, one.member_epoch, one.client_id, one.client_host),
                *(one.subscribed_topic_names, one.subscribed_topic_regex, one.member_type),
                *(
                    sorted((topic.topic_name, topic.partitions) for topic in part.topic_partitions)
                    for part in (one.assignment, one.target_assignment)
                ),
            )
            for one in told.members
        )
        self.told.append((told.error_code, told.error_message, told.group_state, told.group_epoch, members))
        self.told.append((told.assignment_epoch, told.assignor_name, told.authorized_operations))

    def commit(self, group: str, member: str, epoch: int, *indexes: int, version: int = 10) -> None:
        partitions = [OffsetCommitRequestPartition(index, 3) for index in indexes]
        name, topic_id = ("t", bytes(16)) if version < 10 else ("", self.topic_id)
        request = OffsetCommitRequest(
            group, epoch, member, topics=[OffsetCommitRequestTopic(name, topic_id, partitions)]
        )
        told = ask(self.address, request, OffsetCommitResponse, version)
        self.told.append(tuple(ErrorCode(one.error_code).name for topic in told.topics for one in topic.partitions))

    def fetch(self, group: str, member: str | None, epoch: int) -> None:
        topics = [OffsetFetchRequestTopics("t", partition_indexes=[0])]
        request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group, member, epoch, topics)])
        (told,) = ask(self.address, request, OffsetFetchResponse, 9).groups
        offsets = [one.committed_offset for topic in told.topics for one in topic.partitions]
        self.told.append((ErrorCode(told.error_code).name, offsets))


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    with running_both(tmp_path_factory.mktemp("both")) as pair:
        pair.ask(
            CreateTopicsRequest([CreatableTopic("t", PARTITIONS, 1), CreatableTopic("tt", 1, 1)]), CreateTopicsResponse
        )
        for server in pair:
            wait_for_groups(server)
        yield pair


def wait_for_groups(server: Server) -> None:
    """Wait until a group can be made: the first one has its topic created."""
    deadline = time.monotonic() + SECONDS_MAX
    request = FindCoordinatorRequest(key_type=0, coordinator_keys=["first"])
    while time.monotonic() < deadline:
        (found,) = ask(server.address, request, FindCoordinatorResponse).coordinators
        beat = ConsumerGroupHeartbeatRequest("first", "m", 0, **FULL)
        if not found.error_code:
            told = ask(server.address, beat, ConsumerGroupHeartbeatResponse)
            if told.error_code not in NOT_YET and told.assignment is not None and told.assignment.topic_partitions:
                return
        time.sleep(0.1)
    raise AssertionError("no group could be made")


def agreed(both: Both, story: Any) -> Told:
    """What both were told; fails where they were not told the same."""
    players = [Player(server) for server in both]
    for player in players:
        story(player)
    ours, theirs = (player.told for player in players)
    assert ours == theirs
    return ours


def test_what_a_heartbeat_may_say(both: Both) -> None:
    """K1: one request a rule."""

    def story(player: Player) -> None:
        for group, member in (("", "a"), (" ", "a"), ("k1", "")):
            player.beat(group, member, 0, **FULL)
        for epoch in (1, -1, -2):
            player.beat("k1", "", epoch, version=0)
        player.beat("k1", "a", 0, instance_id="", **FULL)
        player.beat("k1", "a", 0, rack_id="", **FULL)
        player.beat("k1", "a", 0)
        player.beat("k1", "a", 0, rebalance_timeout_ms=5)
        player.beat("k1", "a", 0, rebalance_timeout_ms=5, owned=[1])
        player.beat("k1", "a", 0, rebalance_timeout_ms=5, topic_partitions=[])
        for epoch in (-2, -3, 5, -1):
            player.beat("k1", "a", epoch)
        player.beat("k1", "a", 0, server_assignor="x", **FULL)

    told = agreed(both, story)
    assert {line[0] for line in told} == {"INVALID_REQUEST", "UNSUPPORTED_ASSIGNOR", "GROUP_ID_NOT_FOUND"}


def test_epochs_and_assignments(both: Both) -> None:
    """K2 to K4, K6, K7: two members, from the first heartbeat to the last."""

    def story(player: Player) -> None:
        first = player.beat("k2", "a", 0, **FULL)
        second = player.beat("k2", "b", 0, **FULL)  # within the interval of assignments
        player.beat("k2", "a", first)
        time.sleep(1.2)  # the interval of assignments is a second
        second = player.beat("k2", "b", second)
        first = player.beat("k2", "a", first)
        player.beat("k2", "b", second)
        player.describe("k2")
        old = first
        first = player.beat("k2", "a", first, owned=[0, 1, 2])
        for epoch in (first + 1, old, old - 1):
            player.beat("k2", "a", epoch)
        player.beat("k2", "a", old, owned=[0, 1, 2])
        player.beat("k2", "a", old, owned=[0, 1, 2, 3])
        player.beat("k2", "b", second)
        player.beat("k2", "stranger", second)
        player.describe("k2")
        for epoch in (first, first + 1, old, 0, -1):
            player.commit("k2", "a", epoch, 0, 3)
            player.commit("k2", "a", epoch, 0)
            player.fetch("k2", "a", epoch)
        player.commit("k2", "a", first, 0, version=8)
        player.commit("k2", "stranger", first, 0)
        player.commit("k2", "", -1, 0)
        player.fetch("k2", None, -1)
        player.fetch("k2", "stranger", first)
        player.beat("k2", "a", 0, **FULL)
        player.beat("k2", "a", -1)
        player.describe("k2")
        player.beat("k2", "b", -1)
        player.describe("k2")
        player.describe("unknown")

    told = agreed(both, story)
    assert {"FENCED_MEMBER_EPOCH", "UNKNOWN_MEMBER_ID", "STALE_MEMBER_EPOCH"} <= {line[0] for line in told}


def test_static_members(both: Both) -> None:
    """K5."""

    def story(player: Player) -> None:
        epoch = player.beat("k5", "s1", 0, instance_id="i", **FULL)
        player.beat("k5", "s2", 0, instance_id="i", **FULL)
        player.beat("k5", "s1", 0, instance_id="i", **FULL)
        player.beat("k5", "s2", epoch, instance_id="i")
        player.beat("k5", "s2", epoch, instance_id="j")
        player.beat("k5", "s1", -2, instance_id="i")
        player.describe("k5")
        player.beat("k5", "s2", 0, instance_id="i", **FULL)
        player.describe("k5")
        player.beat("k5", "s1", epoch, instance_id="i")
        player.beat("k5", "s2", -1, instance_id="i")

    assert {"UNRELEASED_INSTANCE_ID", "FENCED_INSTANCE_ID"} <= {line[0] for line in agreed(both, story)}


def test_expressions(both: Both) -> None:
    """K11: what is read, what it matches, and what a change of it moves."""

    def story(player: Player) -> None:
        for regex in ("(", "t(?=u)", r"(t)\1", "t{1001}", "t++", "(?>t)", r"t\Z", "[t"):
            player.express("k11", "refused", regex)
        for regex in ("t", "T|t", "(?i)T", "^t$", "u.*|tt", "(?<n>t)", r"\Qt\E", r"\p{L}", "[[:alpha:]]+", ".*"):
            player.express("k11-one", regex, regex, {"[[:alpha:]]+": 2, ".*": 3}.get(regex, 1))
            player.describe("k11-one")
            player.beat("k11-one", regex, -1)
        epoch = player.express("k11-two", "a", "tt", topics=2, subscribed_topic_names=["t"])
        player.express("k11-two", "a", "t", member_epoch=epoch, subscribed_topic_names=["t"])

    told = agreed(both, story)
    assert {"NONE", "INVALID_REGULAR_EXPRESSION"} <= {line[0] for line in told}


def test_what_tools_are_told(both: Both) -> None:
    """The requests of older tools, of groups that they cannot describe."""

    def story(player: Player) -> None:
        player.beat("tools", "m", 0, rebalance_timeout_ms=5, topic_partitions=[], subscribed_topic_names=[])
        for version in (5, 6):
            (told,) = ask(player.address, DescribeGroupsRequest(["tools"]), DescribeGroupsResponse, version).groups
            player.told.append(
                (told.error_code, told.error_message, told.group_state, told.protocol_type, told.members)
            )
        filters: tuple[dict[str, Any], ...] = (
            {},
            {"types_filter": ["Consumer"]},
            {"types_filter": ["classic"]},
            {"states_filter": ["stable"]},
            {"states_filter": ["Empty"]},
        )
        for one in filters:
            listed = ask(player.address, ListGroupsRequest(**one), ListGroupsResponse, 5).groups
            shown = [(g.group_id, g.protocol_type, g.group_state, g.group_type) for g in listed]
            player.told.append(tuple(group for group in shown if group[0] == "tools"))
        partitions = [OffsetDeleteRequestPartition(0)]
        forget = OffsetDeleteRequest("tools", [OffsetDeleteRequestTopic("t", partitions)])
        for _ in range(2):
            gone = ask(player.address, forget, OffsetDeleteResponse, 0)
            player.told.append((gone.error_code, [p.error_code for topic in gone.topics for p in topic.partitions]))
            player.beat("tools", "n", 0, **FULL)
        for epoch in (0, -1):
            (deleted,) = ask(player.address, DeleteGroupsRequest(["tools"]), DeleteGroupsResponse, 2).results
            player.told.append((deleted.error_code,))
            if not epoch:
                player.beat("tools", "m", -1)
                player.beat("tools", "n", -1)
        player.describe("tools")

    agreed(both, story)
