"""Share groups (KIP-932) at their group coordinator: the same requests to Kavka and to Apache Kafka, the same answers.

The state of a partition is initialized behind the answer of a heartbeat, and an assignment may wait for its interval: a
member heartbeats until it has what it is to have, and only the last answer counts.
"""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages.alter_share_group_offsets_request import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from kavka_broker.protocol.messages.alter_share_group_offsets_response import AlterShareGroupOffsetsResponse
from kavka_broker.protocol.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from kavka_broker.protocol.messages.consumer_group_describe_response import ConsumerGroupDescribeResponse
from kavka_broker.protocol.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from kavka_broker.protocol.messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse
from kavka_broker.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kavka_broker.protocol.messages.create_topics_response import CreateTopicsResponse
from kavka_broker.protocol.messages.delete_groups_request import DeleteGroupsRequest
from kavka_broker.protocol.messages.delete_groups_response import DeleteGroupsResponse
from kavka_broker.protocol.messages.delete_share_group_offsets_request import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
)
from kavka_broker.protocol.messages.delete_share_group_offsets_response import DeleteShareGroupOffsetsResponse
from kavka_broker.protocol.messages.describe_groups_request import DescribeGroupsRequest
from kavka_broker.protocol.messages.describe_groups_response import DescribeGroupsResponse
from kavka_broker.protocol.messages.describe_share_group_offsets_request import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
)
from kavka_broker.protocol.messages.describe_share_group_offsets_response import DescribeShareGroupOffsetsResponse
from kavka_broker.protocol.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from kavka_broker.protocol.messages.join_group_response import JoinGroupResponse
from kavka_broker.protocol.messages.list_groups_request import ListGroupsRequest
from kavka_broker.protocol.messages.list_groups_response import ListGroupsResponse
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
from kavka_broker.protocol.messages.share_group_describe_request import ShareGroupDescribeRequest
from kavka_broker.protocol.messages.share_group_describe_response import ShareGroupDescribeResponse
from kavka_broker.protocol.messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from kavka_broker.protocol.messages.share_group_heartbeat_response import ShareGroupHeartbeatResponse
from tests.conformance.groups.test_consumer_groups_agree import NOT_YET, wait_for_groups
from tests.conformance.side_by_side.products import KAFKA, KAVKA, become
from tests.conformance.storage.compacting import running
from tests.support.asking import ask
from tests.support.both import Both, running_both
from tests.support.servers import Server, start_apache_kafka

pytestmark = [pytest.mark.java, pytest.mark.slow]

SECONDS_MAX = 90.0
PARTITIONS = 3
SETTINGS = {
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "3",
}
Told = list[tuple[Any, ...]]
Topics = dict[str, list[int]]


class Player:
    """One server, and everything that it has answered, without what is its own (ids of topics)."""

    def __init__(self, server: Server) -> None:
        self.address = server.address
        self.told: Told = []

    def beat(self, group: str, member: str, epoch: int, **fields: Any) -> int:
        """A heartbeat; returns the epoch of the answer."""
        told = self._beat(group, member, epoch, **fields)
        name = ErrorCode(told.error_code).name
        self.told.append((name, told.error_message, told.member_id, told.member_epoch, told.heartbeat_interval_ms > 0))
        return told.member_epoch

    def join(self, group: str, member: str, *topics: str, count: int) -> int:
        """Join, and heartbeat until the member has so many partitions; returns its epoch then."""
        return self.stay(group, member, 0, count=count, subscribed_topic_names=list(topics))

    def stay(self, group: str, member: str, epoch: int, *, count: int, **fields: Any) -> int:
        """Heartbeat until the member has so many partitions; returns its epoch then."""
        deadline, told = time.monotonic() + SECONDS_MAX, self._beat(group, member, epoch, **fields)
        while count_of(told) != count:
            assert time.monotonic() < deadline, f"{member} of {group} has {told}, and not {count}"
            time.sleep(0.1)
            told = self._beat(group, member, told.member_epoch)
        self.told.append((told.error_code, told.member_epoch, count))
        return told.member_epoch

    def _beat(self, group: str, member: str, epoch: int, **fields: Any) -> ShareGroupHeartbeatResponse:
        return ask(
            self.address, ShareGroupHeartbeatRequest(group, member, epoch, **fields), ShareGroupHeartbeatResponse
        )

    def describe(self, *groups: str, **fields: Any) -> None:
        answer = ask(self.address, ShareGroupDescribeRequest(list(groups), **fields), ShareGroupDescribeResponse)
        for told in sorted(answer.groups, key=lambda group: group.group_id):
            members = sorted(
                (
                    *(one.member_id, one.rack_id, one.member_epoch, one.client_id, one.client_host),
                    one.subscribed_topic_names,
                    sum(len(topic.partitions) for topic in one.assignment.topic_partitions),
                )
                for one in told.members
            )
            self.told.append((told.error_code, told.error_message, told.group_id, told.group_state, members))
            self.told.append((told.group_epoch, told.assignment_epoch, told.assignor_name, told.authorized_operations))

    def offsets(self, group: str, topics: Topics | None) -> None:
        asked = [DescribeShareGroupOffsetsRequestTopic(*topic) for topic in (topics or {}).items()]
        request = DescribeShareGroupOffsetsRequest(
            [DescribeShareGroupOffsetsRequestGroup(group, None if topics is None else asked)]
        )
        (told,) = ask(self.address, request, DescribeShareGroupOffsetsResponse).groups
        parts = sorted(
            (topic.topic_name, part.partition_index, part.start_offset, part.leader_epoch, part.lag, part.error_code)
            for topic in told.topics
            for part in topic.partitions
        )
        self.told.append((told.group_id, told.error_code, told.error_message, parts))

    def alter(self, group: str, **topics: dict[int, int]) -> None:
        asked = [
            AlterShareGroupOffsetsRequestTopic(
                name, [AlterShareGroupOffsetsRequestPartition(*part) for part in offsets.items()]
            )
            for name, offsets in topics.items()
        ]
        told = ask(self.address, AlterShareGroupOffsetsRequest(group, asked), AlterShareGroupOffsetsResponse)
        parts = sorted(
            (topic.topic_name, part.partition_index, part.error_code, part.error_message)
            for topic in told.responses
            for part in topic.partitions
        )
        self.told.append((ErrorCode(told.error_code).name, parts))

    def forget(self, group: str, *topics: str) -> None:
        asked = [DeleteShareGroupOffsetsRequestTopic(name) for name in topics]
        told = ask(self.address, DeleteShareGroupOffsetsRequest(group, asked), DeleteShareGroupOffsetsResponse)
        answers = sorted((topic.topic_name, topic.error_code, topic.error_message) for topic in told.responses)
        self.told.append((ErrorCode(told.error_code).name, answers))

    def delete(self, group: str) -> None:
        (told,) = ask(self.address, DeleteGroupsRequest([group]), DeleteGroupsResponse, 2).results
        self.told.append((told.group_id, ErrorCode(told.error_code).name))


def count_of(told: ShareGroupHeartbeatResponse) -> int:
    return -1 if told.assignment is None else sum(len(topic.partitions) for topic in told.assignment.topic_partitions)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    with running_both(tmp_path_factory.mktemp("both"), SETTINGS) as pair:
        topics = [CreatableTopic("t", PARTITIONS, 1), CreatableTopic("u", 1, 1)]
        pair.ask(CreateTopicsRequest(topics), CreateTopicsResponse)
        for server in pair:
            wait_for_groups(server)
            wait_for_share_groups(server)
        yield pair


def wait_for_share_groups(server: Server) -> None:
    """Wait until a partition is assigned: the first one has the topic of states created."""
    deadline = time.monotonic() + SECONDS_MAX
    player, epoch = Player(server), 0
    while time.monotonic() < deadline:
        told = player._beat("first share", "m", epoch, subscribed_topic_names=["u"])
        if told.error_code not in NOT_YET:
            assert not told.error_code, told
            epoch = told.member_epoch
            if count_of(told) == 1:
                return
        time.sleep(0.1)
    raise AssertionError("no partition was assigned")


def agreed(both: Both, story: Any) -> Told:
    """What both were told; fails where they were not told the same."""
    players = [Player(server) for server in both]
    for player in players:
        story(player)
    ours, theirs = (player.told for player in players)
    assert ours == theirs
    return ours


def test_what_a_heartbeat_may_say(both: Both) -> None:
    def story(player: Player) -> None:
        full: dict[str, Any] = {"subscribed_topic_names": ["t"]}
        for group, member in (("", "a"), (" ", "a"), ("h", ""), ("h", " "), ("h", "m" * 37)):
            player.beat(group, member, 0, **full)
        player.beat("h", "a", 0)
        player.beat("h", "a", 0, subscribed_topic_names=[])
        player.beat("h", "a", 0, rack_id="", **full)
        for epoch in (-2, 5, -1):
            player.beat("h", "a", epoch)
        player.describe("h", "")
        player.beat("h", "m" * 36, 0, **full)
        player.beat("h", "m" * 36, -1)

    told = agreed(both, story)
    assert {"INVALID_REQUEST", "GROUP_ID_NOT_FOUND", "NONE"} <= {line[0] for line in told}


def test_epochs_and_assignments(both: Both) -> None:
    def story(player: Player) -> None:
        first = player.join("s1", "a", "t", "u", count=PARTITIONS + 1)
        player.describe("s1", include_authorized_operations=True)
        player.join("s1", "b", "t", "u", count=2)
        first = player.stay("s1", "a", first, count=2)
        player.describe("s1")
        for epoch in (first + 1, first - 1, first - 2, 0):
            player.beat("s1", "a", epoch, subscribed_topic_names=["t", "u"])
        player.beat("s1", "stranger", first)
        for name in "cd":
            player.join("s1", name, "t", "u", count=1)
        player.stay("s1", "e", 0, count=1, subscribed_topic_names=["u"], rack_id="r")
        player.describe("s1", "unknown")
        for name in "bcde":
            player.beat("s1", name, -1)
        player.stay("s1", "a", first, count=PARTITIONS + 1, subscribed_topic_names=["t", "u"])
        player.stay("s1", "a", 0, count=1, subscribed_topic_names=["u", "missing"])
        player.beat("s1", "a", -1)
        player.describe("s1")

    told = agreed(both, story)
    assert {"FENCED_MEMBER_EPOCH", "UNKNOWN_MEMBER_ID"} <= {line[0] for line in told}


def test_offsets(both: Both) -> None:
    def story(player: Player) -> None:
        player.offsets("o1", None)
        player.offsets("o1", {"t": [0, 1], "missing": [1]})
        player.offsets("o1", {})
        player.forget("o1", "t")
        player.alter("o1", t={0: 3, 9: 1}, missing={0: 1})
        player.describe("o1")
        for topics in (None, {"t": [0, 1], "missing": [1]}):
            player.offsets("o1", topics)
        player.alter("o1", t={0: 0, 1: 0})
        player.join("o1", "a", "t", count=PARTITIONS)
        player.offsets("o1", None)
        player.alter("o1", t={0: 0})
        player.forget("o1", "t")
        player.delete("o1")
        player.beat("o1", "a", -1)
        player.forget("o1", "t", "u", "missing")
        player.offsets("o1", None)
        player.forget("o1", "t")
        player.alter("o1", missing={0: 1})
        player.delete("o1")
        player.delete("o1")
        player.alter("o2", missing={0: 1})
        player.describe("o1", "o2")
        player.alter("")
        player.forget("")

    told = agreed(both, story)
    assert {("o1", "NON_EMPTY_GROUP"), ("o1", "NONE"), ("o1", "GROUP_ID_NOT_FOUND")} <= {
        (line[0], line[1]) for line in told if line[0] == "o1" and isinstance(line[1], str)
    }


def test_groups_of_other_protocols(both: Both) -> None:
    def story(player: Player) -> None:
        player.join("x1", "a", "u", count=1)
        consumer: dict[str, Any] = {"rebalance_timeout_ms": 9, "subscribed_topic_names": ["u"], "topic_partitions": []}
        beat = ask(
            player.address, ConsumerGroupHeartbeatRequest("x1", "c", 0, **consumer), ConsumerGroupHeartbeatResponse
        )
        player.told.append((beat.error_code, beat.error_message))
        ask(player.address, ConsumerGroupHeartbeatRequest("x2", "c", 0, **consumer), ConsumerGroupHeartbeatResponse)
        player.beat("x2", "a", 0, subscribed_topic_names=["u"])
        player.beat("x2", "a", -1)
        player.alter("x2", u={0: 1})
        player.forget("x2", "u")
        player.describe("x2")
        protocols = [JoinGroupRequestProtocol("range", b"")]
        join = JoinGroupRequest("x1", 10_000, 10_000, "", None, "consumer", protocols)
        joined = ask(player.address, join, JoinGroupResponse)
        player.told.append((joined.error_code, joined.member_id))
        (described,) = ask(player.address, DescribeGroupsRequest(["x1"]), DescribeGroupsResponse).groups
        player.told.append((described.error_code, described.error_message, described.group_state))
        (shown,) = ask(player.address, ConsumerGroupDescribeRequest(["x1"]), ConsumerGroupDescribeResponse).groups
        player.told.append((shown.error_code, shown.error_message))
        commit = OffsetCommitRequest(
            "x1", -1, "", topics=[OffsetCommitRequestTopic("u", partitions=[OffsetCommitRequestPartition(0, 1)])]
        )
        committed = ask(player.address, commit, OffsetCommitResponse, 9)
        player.told.append(tuple(part.error_code for topic in committed.topics for part in topic.partitions))
        fetch = OffsetFetchRequest(
            groups=[OffsetFetchRequestGroup("x1", None, -1, [OffsetFetchRequestTopics("u", partition_indexes=[0])])]
        )
        (fetched,) = ask(player.address, fetch, OffsetFetchResponse, 9).groups
        offsets = [part.committed_offset for topic in fetched.topics for part in topic.partitions]
        player.told.append((fetched.error_code, offsets))
        forget = OffsetDeleteRequest("x1", [OffsetDeleteRequestTopic("u", [OffsetDeleteRequestPartition(0)])])
        player.told.append((ask(player.address, forget, OffsetDeleteResponse).error_code,))
        filters: tuple[dict[str, Any], ...] = (
            {},
            {"types_filter": ["Share"]},
            {"types_filter": ["consumer"]},
            {"states_filter": ["stable"]},
            {"states_filter": ["Empty"]},
        )
        for fields in filters:
            listed = ask(player.address, ListGroupsRequest(**fields), ListGroupsResponse).groups
            shown_groups = [(g.group_id, g.protocol_type, g.group_state, g.group_type.lower()) for g in listed]
            player.told.append(tuple(group for group in shown_groups if group[0] == "x1"))
        player.beat("x1", "a", -1)
        player.delete("x1")

    agreed(both, story)


def test_either_product_goes_on_with_the_groups_of_the_other(tmp_path: Path) -> None:
    """A member and a group without one, first on Apache Kafka, then on Kavka, then on Apache Kafka again.

    The hashes of topics that the two write are different ones, so that each begins with an epoch of its own, in which
    nothing moves.
    """
    server = start_apache_kafka(tmp_path / "node", {**SETTINGS, "offsets.topic.num.partitions": "2"})
    try:
        ask(server.address, CreateTopicsRequest([CreatableTopic("t", PARTITIONS, 1)]), CreateTopicsResponse)
        wait_for_groups(server)
        wait_for_member(server, 0, subscribed_topic_names=["t"])
        player = Player(server)
        epoch = player.join("g", "a", "t", count=PARTITIONS)
        player.alter("altered", t={0: 0, 2: 5})
        told = shown(server, epoch)
    finally:
        server.stop()
    for number, product in enumerate((KAVKA, KAFKA), 1):
        become(server, product)
        with running(server):
            wait_for_member(server, epoch)
            assert shown(server, epoch + number) == told, product


def wait_for_member(server: Server, epoch: int, **fields: Any) -> None:
    """Wait until a heartbeat of the member is taken."""
    deadline = time.monotonic() + SECONDS_MAX
    while (told := Player(server)._beat("g", "a", epoch, **fields)).error_code in NOT_YET:
        assert time.monotonic() < deadline, told
        time.sleep(0.1)
    assert not told.error_code, told


def shown(server: Server, epoch: int) -> Told:
    """What the groups are, with the member in this epoch, which is left out."""
    player = Player(server)
    assert player.stay("g", "a", epoch, count=PARTITIONS, subscribed_topic_names=["t"]) == epoch
    player.told.clear()
    player.describe("altered")
    player.offsets("altered", None)
    (group,) = ask(server.address, ShareGroupDescribeRequest(["g"]), ShareGroupDescribeResponse).groups
    assert (group.group_epoch, group.assignment_epoch) == (epoch, epoch)
    members = [(one.member_id, one.member_epoch - epoch, one.subscribed_topic_names) for one in group.members]
    assigned = [(part.topic_name, part.partitions) for one in group.members for part in one.assignment.topic_partitions]
    player.told.append((group.group_state, members, assigned))
    return player.told
