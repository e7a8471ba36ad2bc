"""Streams groups (KIP-1071): the same requests to Kavka and to Apache Kafka, the same answers.

Internal topics are created behind the answer of a heartbeat, and an assignment may wait for its turn: a member
heartbeats until it has what it is to have, and only the last answer counts.
"""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from kavka_broker.protocol.messages.consumer_group_describe_response import ConsumerGroupDescribeResponse
from kavka_broker.protocol.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from kavka_broker.protocol.messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse
from kavka_broker.protocol.messages.create_partitions_request import CreatePartitionsRequest, CreatePartitionsTopic
from kavka_broker.protocol.messages.create_partitions_response import CreatePartitionsResponse
from kavka_broker.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kavka_broker.protocol.messages.create_topics_response import CreateTopicsResponse
from kavka_broker.protocol.messages.delete_groups_request import DeleteGroupsRequest
from kavka_broker.protocol.messages.delete_groups_response import DeleteGroupsResponse
from kavka_broker.protocol.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kavka_broker.protocol.messages.delete_topics_response import DeleteTopicsResponse
from kavka_broker.protocol.messages.describe_groups_request import DescribeGroupsRequest
from kavka_broker.protocol.messages.describe_groups_response import DescribeGroupsResponse
from kavka_broker.protocol.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from kavka_broker.protocol.messages.join_group_response import JoinGroupResponse
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
from kavka_broker.protocol.messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from kavka_broker.protocol.messages.share_group_heartbeat_response import ShareGroupHeartbeatResponse
from kavka_broker.protocol.messages.streams_group_describe_request import StreamsGroupDescribeRequest
from kavka_broker.protocol.messages.streams_group_describe_response import StreamsGroupDescribeResponse
from kavka_broker.protocol.messages.streams_group_heartbeat_request import (
    CopartitionGroup,
    Endpoint,
    KeyValue,
    StreamsGroupHeartbeatRequest,
    Subtopology,
    TaskIds,
    TaskOffset,
    TopicInfo,
    Topology,
)
from kavka_broker.protocol.messages.streams_group_heartbeat_response import StreamsGroupHeartbeatResponse
from kavka_broker.protocol.messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest
from kavka_broker.protocol.messages.update_features_response import UpdateFeaturesResponse
from tests.conformance.groups.test_consumer_groups_agree import NOT_YET, wait_for_groups
from tests.conformance.side_by_side.products import KAFKA, KAVKA, become
from tests.conformance.storage.compacting import running
from tests.support.asking import ask
from tests.support.both import Both, running_both
from tests.support.servers import Server, start_apache_kafka

pytestmark = [pytest.mark.java, pytest.mark.slow]

SECONDS_MAX = 90.0
SETTINGS = {
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.streams.assignment.interval.ms": "0",
}
Told = list[tuple[Any, ...]]
REBALANCE_MS = 60_000  # of a member that is to give something up; it does so at once


def topology(*parts: Subtopology, epoch: int = 0) -> Topology:
    return Topology(epoch, list(parts))


def plain(*sources: str, name: str = "0") -> Topology:
    return topology(Subtopology(name, list(sources)))


def stateful(group: str, source: str, *, repartitioned: int = 0) -> Topology:
    """A topology of two subtopologies with a repartition topic between them, and state behind it."""
    compacted = [KeyValue("cleanup.policy", "compact")]
    between = TopicInfo(f"{group}-repartition", repartitioned, 1, [KeyValue("cleanup.policy", "delete")])
    return topology(
        Subtopology("0", [source], repartition_sink_topics=[between.name]),
        Subtopology(
            "1",
            repartition_source_topics=[between],
            state_changelog_topics=[TopicInfo(f"{group}-changelog", 0, 1, compacted)],
        ),
    )


def joining(told: Topology, process: str = "p", **fields: Any) -> dict[str, Any]:
    """The fields of a heartbeat that joins."""
    nothing: dict[str, Any] = {"active_tasks": [], "standby_tasks": [], "warmup_tasks": []}
    known = {"rebalance_timeout_ms": REBALANCE_MS, "topology": told, "process_id": process, "client_tags": []}
    return {**nothing, **known, **fields}


def tasks(*parts: tuple[str, Sequence[int]]) -> list[TaskIds]:
    return [TaskIds(name, list(indexes)) for name, indexes in parts]


def reported(told: Sequence[Any]) -> list[TaskIds]:
    """The tasks of an answer as a request has them."""
    return tasks(*((part.subtopology_id, part.partitions) for part in told))


def shown_tasks(told: Sequence[Any] | None) -> tuple[Any, ...] | None:
    if told is None:
        return None
    return tuple(sorted((part.subtopology_id, tuple(sorted(part.partitions))) for part in told))


def shown_statuses(told: Sequence[Any] | None) -> tuple[Any, ...]:
    return tuple(sorted((status.status_code, status.status_detail) for status in told or ()))


class Player:
    """One server, and everything that it has answered."""

    def __init__(self, server: Server) -> None:
        self.address, self.name = server.address, server.directory.name
        self.told: Told = []

    def beat(self, group: str, member: str, epoch: int, **fields: Any) -> int:
        """A heartbeat; returns the epoch of the answer."""
        told = self.heard(group, member, epoch, **fields)
        name = ErrorCode(told.error_code).name
        roles = tuple(map(shown_tasks, (told.active_tasks, told.standby_tasks, told.warmup_tasks)))
        self.told.append((name, told.error_message, told.member_id, told.member_epoch, told.heartbeat_interval_ms > 0))
        self.told.append((shown_statuses(told.status), roles))
        return told.member_epoch

    def stay(self, group: str, member: str, epoch: int, count: int | None, **fields: Any) -> int:
        """Heartbeat until the member has so many active tasks, or None: is told that its topics are not in order, and
        do what a member has to do; returns its epoch then. What it has said last is what counts.
        """
        deadline, told = time.monotonic() + SECONDS_MAX, self.heard(group, member, epoch, **fields)
        has: list[TaskIds] = []
        said: list[TaskIds] | None = None
        while True:
            assert not told.error_code, told
            if told.active_tasks is not None:
                has = reported(told.active_tasks)
            is_reported = said is not None and shown_tasks(said) == shown_tasks(has)
            is_settled = is_reported and sum(len(part.partitions) for part in has) == (count or 0)
            if is_settled and (count is not None or any(status.status_code in (1, 2) for status in told.status or ())):
                break
            assert time.monotonic() < deadline, f"{self.name}: {member} of {group} has {has}, {told}, and not {count}"
            time.sleep(0.05)
            owned: dict[str, Any] = {"active_tasks": has, "standby_tasks": [], "warmup_tasks": []}
            said, told = has, self.heard(group, member, told.member_epoch, **owned)
        if count is None:
            self.told.append((member, shown_statuses(told.status)))
        else:
            self.told.append((member, count))
        return told.member_epoch

    def share(self, group: str, fields: dict[str, dict[str, Any]], counts: list[int]) -> None:
        """Heartbeat for several members in turns until they have reported so many active tasks."""
        deadline = time.monotonic() + SECONDS_MAX
        epochs, has = dict.fromkeys(fields, 0), {member: list[TaskIds]() for member in fields}
        while True:
            is_reported = True
            for member, said in fields.items():
                owned = {"active_tasks": has[member], "standby_tasks": [], "warmup_tasks": []}
                told = self.heard(group, member, epochs[member], **(owned if epochs[member] else said))
                assert not told.error_code, told
                epochs[member] = told.member_epoch
                if told.active_tasks is not None:
                    is_reported = is_reported and shown_tasks(told.active_tasks) == shown_tasks(has[member])
                    has[member] = reported(told.active_tasks)
            sizes = sorted(sum(len(part.partitions) for part in tasks) for tasks in has.values())
            if is_reported and sizes == counts:
                return
            assert time.monotonic() < deadline, f"{self.name}: {group} has {has}, and not {counts}"
            time.sleep(0.05)

    def endpoints(self, group: str, member: str) -> list[tuple[Any, ...]]:
        """What a member that has seen nothing is told of the endpoints of its group."""
        (described,) = ask(self.address, StreamsGroupDescribeRequest([group]), StreamsGroupDescribeResponse).groups
        epoch = next(one.member_epoch for one in described.members if one.member_id == member)
        told = self.heard(group, member, epoch, endpoint_information_epoch=-1)
        return sorted(
            (
                *(served.user_endpoint.host, served.user_endpoint.port),
                *(
                    sorted((part.topic, tuple(sorted(part.partitions))) for part in parts)
                    for parts in (served.active_partitions, served.standby_partitions)
                ),
            )
            for served in told.partitions_by_user_endpoint or ()
        )

    def heard(self, group: str, member: str, epoch: int, **fields: Any) -> StreamsGroupHeartbeatResponse:
        request = StreamsGroupHeartbeatRequest(group, member, epoch, **fields)
        return ask(self.address, request, StreamsGroupHeartbeatResponse)

    def describe(self, *groups: str, has_epochs: bool = False, **fields: Any) -> None:
        """Describe groups. Their epochs are their own, as internal topics appear at times of their own."""
        answer = ask(self.address, StreamsGroupDescribeRequest(list(groups), **fields), StreamsGroupDescribeResponse)
        for told in sorted(answer.groups, key=lambda group: group.group_id):
            self.told.append((told.error_code, told.error_message, told.group_id, told.group_state))
            self.told.append((told.authorized_operations, shown_topology(told.topology)))
            members = sorted(told.members, key=lambda one: one.member_id)
            self.told += [shown_member(one, told.group_epoch) for one in members]
            if has_epochs:
                self.told.append((told.group_epoch, told.assignment_epoch))

    def create(self, **topics: int) -> None:
        made = [CreatableTopic(name, count, 1) for name, count in topics.items()]
        answer = ask(self.address, CreateTopicsRequest(made), CreateTopicsResponse)
        assert {topic.error_code for topic in answer.topics} <= {0}, answer

    def topics(self, *names: str) -> None:
        """What becomes of topics: their numbers of partitions."""
        asked = [MetadataRequestTopic(name=name) for name in names]
        answer = ask(self.address, MetadataRequest(asked, False), MetadataResponse, 12)
        self.told.append(
            tuple(sorted((topic.name, topic.error_code, len(topic.partitions)) for topic in answer.topics))
        )

    def delete(self, group: str) -> None:
        (told,) = ask(self.address, DeleteGroupsRequest([group]), DeleteGroupsResponse, 2).results
        self.told.append((told.group_id, ErrorCode(told.error_code).name))

    def commit(self, group: str, member: str, epoch: int, topic: str, offset: int) -> None:
        parts = [OffsetCommitRequestTopic(topic, partitions=[OffsetCommitRequestPartition(0, offset)])]
        told = ask(self.address, OffsetCommitRequest(group, epoch, member, topics=parts), OffsetCommitResponse, 9)
        codes = [ErrorCode(part.error_code).name for answer in told.topics for part in answer.partitions]
        self.told.append(("commit", *codes))

    def fetch(self, group: str, topic: str, member: str | None = None, epoch: int = -1) -> None:
        wanted = OffsetFetchRequestGroup(group, member, epoch, [OffsetFetchRequestTopics(topic, partition_indexes=[0])])
        (told,) = ask(self.address, OffsetFetchRequest(groups=[wanted]), OffsetFetchResponse, 9).groups
        offsets = [part.committed_offset for answer in told.topics for part in answer.partitions]
        self.told.append(("fetch", ErrorCode(told.error_code).name, *offsets))

    def forget(self, group: str, topic: str) -> None:
        wanted = [OffsetDeleteRequestTopic(topic, [OffsetDeleteRequestPartition(0)])]
        told = ask(self.address, OffsetDeleteRequest(group, wanted), OffsetDeleteResponse)
        codes = [ErrorCode(part.error_code).name for answer in told.topics for part in answer.partitions]
        self.told.append(("forget", ErrorCode(told.error_code).name, *codes))

    def list(self, prefix: str) -> None:
        filters: tuple[dict[str, Any], ...] = (
            {},
            {"types_filter": ["Streams"]},
            {"types_filter": ["share", "streams"]},
            {"states_filter": ["stable"]},
            {"states_filter": ["Empty", "Dead"]},
        )
        for fields in filters:
            listed = ask(self.address, ListGroupsRequest(**fields), ListGroupsResponse).groups
            groups = [(one.group_id, one.protocol_type, one.group_state, one.group_type.lower()) for one in listed]
            self.told.append(tuple(sorted(group for group in groups if group[0].startswith(prefix))))


def shown_topology(told: Any) -> Any:
    if told is None:
        return None
    parts = sorted(
        (
            *(part.subtopology_id, tuple(part.source_topics), tuple(part.repartition_sink_topics)),
            *(shown_internal(topics) for topics in (part.state_changelog_topics, part.repartition_source_topics)),
        )
        for part in told.subtopologies or ()
    )
    return told.epoch, parts


def shown_internal(topics: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(
        (
            topic.name,
            topic.partitions,
            topic.replication_factor,
            tuple((one.key, one.value) for one in topic.topic_configs),
        )
        for topic in topics
    )


def shown_member(told: Any, group_epoch: int) -> tuple[Any, ...]:
    endpoint = None if told.user_endpoint is None else (told.user_endpoint.host, told.user_endpoint.port)
    assignments = [
        tuple(map(shown_tasks, (one.active_tasks, one.standby_tasks, one.warmup_tasks)))
        for one in (told.assignment, told.target_assignment)
    ]
    return (
        *(told.member_id, told.member_epoch == group_epoch, told.instance_id, told.rack_id, told.client_id),
        *(told.client_host, told.topology_epoch, told.process_id, endpoint),
        tuple(sorted((tag.key, tag.value) for tag in told.client_tags)),
        *(told.task_offsets, told.task_end_offsets, told.is_classic),
        *assignments,
    )


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    with running_both(tmp_path_factory.mktemp("both"), SETTINGS) as pair:
        off = Player(pair.kavka)
        off.beat("off", "a", 0, **joining(plain("t")))
        assert off.told[0][0] == "UNSUPPORTED_VERSION", "a new cluster of Kavka has no streams groups"
        features = [FeatureUpdateKey("streams.version", 1)]
        told = ask(pair.kavka.address, UpdateFeaturesRequest(feature_updates=features), UpdateFeaturesResponse)
        assert not told.error_code, told
        for server in pair:
            Player(server).create(t=3, u=2, v=1)
            wait_for_groups(server)
            wait_for_streams_groups(server)
        yield pair


def wait_for_streams_groups(server: Server) -> None:
    """Wait until a member has a task."""
    deadline = time.monotonic() + SECONDS_MAX
    while Player(server).heard("first streams", "m", 0, **joining(plain("v"))).error_code in NOT_YET:
        assert time.monotonic() < deadline, "no member was taken"
        time.sleep(0.1)
    Player(server).stay("first streams", "m", 0, 1, **joining(plain("v")))


def agreed(both: Both, story: Any) -> Told:
    """What both were told; fails where they were not told the same."""
    players = [Player(server) for server in both]
    for player in players:
        story(player)
    ours, theirs = (player.told for player in players)
    for number, (here, there) in enumerate(zip(ours, theirs, strict=False)):
        assert here == there, f"answer {number} of Kavka is {here}, and of Apache Kafka {there}"
    assert len(ours) == len(theirs)
    return ours


def names_of(told: Told) -> set[str]:
    return {line[0] for line in told if line and isinstance(line[0], str)}


def test_what_a_heartbeat_may_say(both: Both) -> None:
    full = joining(plain("t"))

    def story(player: Player) -> None:
        for group, member in (("", "a"), (" ", "a"), ("h", ""), ("h", " ")):
            player.beat(group, member, 0, **full)
        wrong: tuple[dict[str, Any], ...] = (
            {"instance_id": "i"},
            {"instance_id": ""},
            {"rack_id": ""},
            {"task_offsets": []},
            {"task_end_offsets": [TaskOffset("0", 0, 1)]},
            {"warmup_tasks": tasks(("0", [0]))},
            {"active_tasks": tasks(("0", [0]))},
            {"standby_tasks": tasks(("0", [0]))},
            {"active_tasks": None},
            {"standby_tasks": None, "warmup_tasks": None},
            {"rebalance_timeout_ms": -1},
            {"topology": None},
        )
        for fields in wrong:
            player.beat("h", "a", 0, **{**full, **fields})
        for epoch in (-3, -2, -1, 1):
            player.beat("h", "a", epoch)
            player.beat("h", "a", epoch, topology=plain("t"))
            player.beat("h", "a", epoch, active_tasks=[])
        player.describe("h", "")

    told = agreed(both, story)
    assert {"INVALID_REQUEST", "GROUP_ID_NOT_FOUND"} <= names_of(told)


def test_what_a_topology_may_say(both: Both) -> None:
    log, between = TopicInfo("h-changelog", 4), TopicInfo("h-repartition")

    def story(player: Player) -> None:
        for told in (
            topology(Subtopology("0", ["t"], source_topic_regex=["t.*"])),
            topology(Subtopology("0", ["t"], state_changelog_topics=[log])),
            plain("t", "__consumer_offsets", "__transaction_state"),
            plain("t", "a b", ".."),
            topology(Subtopology("0", ["t"], repartition_sink_topics=["$"])),
            topology(Subtopology("0", ["t"], repartition_source_topics=[between])),  # written by no subtopology
            topology(  # each waits for the other
                Subtopology("0", repartition_source_topics=[between], repartition_sink_topics=["h-other"]),
                Subtopology(
                    "1", repartition_source_topics=[TopicInfo("h-other")], repartition_sink_topics=[between.name]
                ),
            ),
            topology(Subtopology("0")),
        ):
            player.beat("h", "a", 0, **joining(told))
        player.describe("h")

    told = agreed(both, story)
    assert "STREAMS_INVALID_TOPOLOGY" in names_of(told)


def test_what_is_worse_than_in_apache_kafka_is_refused_as_what_it_is(both: Both) -> None:
    """Apache Kafka fails within itself; Kavka says what is wrong."""
    twice = Subtopology("0", ["t"])
    for told in (
        topology(twice, twice),
        topology(Subtopology("0", ["t"], copartition_groups=[CopartitionGroup([7])])),
        topology(Subtopology("0", ["t"]), epoch=-1),
    ):
        ours, theirs = (Player(server).heard("h", "a", 0, **joining(told)) for server in both)
        assert ErrorCode(theirs.error_code) is ErrorCode.UNKNOWN_SERVER_ERROR
        assert ErrorCode(ours.error_code) is ErrorCode.STREAMS_INVALID_TOPOLOGY


def test_epochs_and_tasks(both: Both) -> None:
    def story(player: Player) -> None:
        told = plain("t", "u")
        first = player.stay("s1", "a", 0, 3, **joining(told, rack_id="r", client_tags=[KeyValue("zone", "1")]))
        player.describe("s1", has_epochs=True, include_authorized_operations=True)
        player.beat("s1", "a", first)
        for epoch in (first + 1, first - 2, first + 100):
            player.beat("s1", "a", epoch)
        player.beat("s1", "stranger", first)
        player.beat("s1", "a", first, active_tasks=tasks(("9", [0])), standby_tasks=[], warmup_tasks=[])
        player.beat("s1", "a", first, active_tasks=tasks(("0", [7])), standby_tasks=[], warmup_tasks=[])
        player.beat("s1", "a", first, active_tasks=tasks(("0", [0, 1, 2])), standby_tasks=[], warmup_tasks=[])
        player.beat("s1", "x", 0, **joining(plain("t")))  # another topology of the same epoch
        player.beat("s1", "x", 0, **joining(topology(*told.subtopologies, epoch=5)))
        player.describe("s1", "unknown")
        player.beat("s1", "a", -1)
        player.describe("s1")
        player.beat("s1", "a", -1)
        player.beat("s1", "a", first)

    told = agreed(both, story)
    assert {"FENCED_MEMBER_EPOCH", "UNKNOWN_MEMBER_ID", "INVALID_REQUEST", "NONE"} <= names_of(told)


def test_two_members_share_the_tasks(both: Both) -> None:
    fields: dict[str, dict[str, Any]] = {
        "a": joining(plain("t"), user_endpoint=Endpoint("host", 7)),
        "b": joining(plain("t"), "q", client_tags=[KeyValue("zone", "1")]),
    }

    def story(player: Player) -> None:
        player.share("s2", fields, [1, 2])
        player.told.append(tuple(player.endpoints("s2", "a")))
        player.describe("s2", include_authorized_operations=True)
        player.beat("s2", "b", -1)
        player.told.clear()  # which of the two has which tasks is their own
        player.stay("s2", "a", 0, 3, **fields["a"])
        player.told.append(tuple(player.endpoints("s2", "a")))

    told = agreed(both, story)
    assert told[-1] == (("host", 7, [("t", (0, 1, 2))], []),)


def test_internal_topics_are_created(both: Both) -> None:
    def story(player: Player) -> None:
        told = player.heard("i1", "a", 0, **joining(stateful("i1", "t")))
        assert told.status is not None
        (status,) = told.status
        sentence, _, names = status.status_detail.partition(": ")
        player.told.append((told.error_code, status.status_code, sentence, sorted(names.split(", "))))
        player.stay("i1", "a", told.member_epoch, 6)
        player.topics("i1-repartition", "i1-changelog")
        player.describe("i1")
        player.stay("i2", "a", 0, 3 + 5, **joining(stateful("i2", "t", repartitioned=5)))
        player.topics("i2-repartition", "i2-changelog")
        player.list("i")
        for group in ("i1", "i2"):
            player.beat(group, "a", -1)
            player.told.pop()
            player.told.pop()
        player.describe("i2")
        player.delete("i2")
        player.topics("i2-repartition", "i2-changelog")

    agreed(both, story)


def test_topics_that_are_missing_or_do_not_fit(both: Both) -> None:
    together = topology(Subtopology("0", ["t", "u"], copartition_groups=[CopartitionGroup([0, 1])]))

    def story(player: Player) -> None:
        player.stay("m1", "a", 0, None, **joining(plain("m-a", "m-b", "t")))
        player.describe("m1")
        player.create(**{"m-a": 1, "m-b": 2})
        player.stay("m1", "a", 0, 3, **joining(plain("m-a", "m-b", "t")))
        player.stay("m2", "a", 0, None, **joining(together))
        player.describe("m2")
        player.create(**{"m3-changelog": 7})
        player.stay("m3", "a", 0, None, **joining(stateful("m3", "t")))
        fixed = TopicInfo("m4-repartition", 4, 1)
        parts = [
            Subtopology("0", ["u"], repartition_sink_topics=["m4-repartition"]),
            Subtopology(
                "1", ["t"], repartition_source_topics=[fixed], copartition_groups=[CopartitionGroup([0], [], [0])]
            ),
        ]
        player.stay("m4", "a", 0, None, **joining(topology(*parts)))
        player.list("m")

    told = agreed(both, story)
    # Apache Kafka 4.3 finds none of these by the state that its tools name: it wants `not_ready`.
    for server, count in zip(both, (3, 0), strict=True):
        listed = ask(server.address, ListGroupsRequest(["NotReady"]), ListGroupsResponse).groups
        assert sum(group.group_id.startswith("m") for group in listed) == count
    statuses = [line[1] for line in told if line and line[0] == "a" and isinstance(line[1], tuple)]
    assert {code for status in statuses for code, _ in status} == {1, 2}


def test_topics_that_change_under_a_group(both: Both) -> None:
    def story(player: Player) -> None:
        player.create(**{"c-grows": 1})
        epoch = player.stay("c1", "a", 0, 1, **joining(plain("c-grows")))
        grown = CreatePartitionsRequest([CreatePartitionsTopic("c-grows", 4, None)], 30_000)
        ask(player.address, grown, CreatePartitionsResponse)
        epoch = player.stay("c1", "a", epoch, 4, process_id="p")
        gone = DeleteTopicsRequest([DeleteTopicState("c-grows")], [], 30_000)
        ask(player.address, gone, DeleteTopicsResponse)
        epoch = player.stay("c1", "a", epoch, None)
        player.describe("c1")
        player.create(**{"c-grows": 2})
        player.stay("c1", "a", epoch, 2)

    agreed(both, story)


def test_the_end_of_an_application(both: Both) -> None:
    def story(player: Player) -> None:
        epoch = player.stay("e1", "a", 0, 1, **joining(plain("v")))
        player.beat("e1", "a", epoch, shutdown_application=True)
        player.beat("e1", "a", epoch)
        player.beat("e1", "a", -1)
        player.describe("e1")

    told = agreed(both, story)
    assert any(line[0] and line[0][0][0] == 4 for line in told if isinstance(line[0], tuple))


def test_offsets(both: Both) -> None:
    def story(player: Player) -> None:
        epoch = player.stay("o1", "a", 0, 1, **joining(plain("v")))
        player.commit("o1", "a", epoch, "v", 5)
        player.commit("o1", "a", epoch + 1, "v", 6)
        player.commit("o1", "a", epoch - 2, "v", 7)
        player.commit("o1", "stranger", epoch, "v", 8)
        player.commit("o1", "", -1, "v", 9)
        player.fetch("o1", "v")
        player.fetch("o1", "v", "a", epoch)
        player.fetch("o1", "v", "a", epoch + 1)
        player.fetch("o1", "v", "stranger", epoch)
        player.forget("o1", "v")
        player.forget("o1", "u")
        player.delete("o1")
        player.beat("o1", "a", -1)
        player.commit("o1", "", -1, "v", 10)
        player.fetch("o1", "v")
        player.forget("o1", "v")
        player.fetch("o1", "v")
        player.delete("o1")
        player.delete("o1")
        player.describe("o1")

    told = agreed(both, story)
    assert ("o1", "NON_EMPTY_GROUP") in told


def test_groups_of_other_protocols(both: Both) -> None:
    consumer: dict[str, Any] = {"rebalance_timeout_ms": 9, "subscribed_topic_names": ["v"], "topic_partitions": []}

    def consume(player: Player, group: str) -> None:
        beat = ConsumerGroupHeartbeatRequest(group, "c", 0, **consumer)
        told = ask(player.address, beat, ConsumerGroupHeartbeatResponse)
        player.told.append((ErrorCode(told.error_code).name, told.error_message))

    def join(player: Player, group: str) -> None:
        protocols = [JoinGroupRequestProtocol("range", b"")]
        joined = ask(
            player.address, JoinGroupRequest(group, 10_000, 10_000, "", None, "consumer", protocols), JoinGroupResponse
        )
        player.told.append((ErrorCode(joined.error_code).name, bool(joined.member_id)))

    def share(player: Player, group: str) -> None:
        beat = ShareGroupHeartbeatRequest(group, "s", 0, None, ["v"])
        told = ask(player.address, beat, ShareGroupHeartbeatResponse)
        player.told.append((ErrorCode(told.error_code).name, told.error_message))

    def story(player: Player) -> None:
        player.stay("x1", "a", 0, 1, **joining(plain("v")))
        for other in (consume, join, share):
            other(player, "x1")
        (described,) = ask(player.address, DescribeGroupsRequest(["x1"]), DescribeGroupsResponse).groups
        player.told.append((described.error_code, described.error_message, described.group_state))
        (shown,) = ask(player.address, ConsumerGroupDescribeRequest(["x1"]), ConsumerGroupDescribeResponse).groups
        player.told.append((shown.error_code, shown.error_message))
        consume(player, "x2")
        share(player, "x3")
        for group in ("x2", "x3"):
            player.beat(group, "a", 0, **joining(plain("v")))
            player.beat(group, "a", -1)
            player.describe(group)
        player.list("x1")
        player.beat("x1", "a", -1)
        join(player, "x1")  # Empty, but not one of theirs

    agreed(both, story)


def test_either_product_goes_on_with_the_groups_of_the_other(tmp_path: Path) -> None:
    """A member with tasks, first on Apache Kafka, then on Kavka, then on Apache Kafka again; nothing moves."""
    server = start_apache_kafka(tmp_path / "node", {**SETTINGS, "offsets.topic.num.partitions": "2"})
    try:
        Player(server).create(t=3)
        wait_for_groups(server)
        wait_for_member(server, 0, **joining(stateful("g", "t")))
        player = Player(server)
        epoch = player.stay("g", "a", 0, 6, **joining(stateful("g", "t")))
        told = shown(server)
    finally:
        server.stop()
    for product in (KAVKA, KAFKA):
        become(server, product)
        with running(server):
            if product == KAVKA:
                features = UpdateFeaturesRequest(feature_updates=[FeatureUpdateKey("streams.version", 1)])
                ask(server.address, features, UpdateFeaturesResponse)
            wait_for_member(server, epoch)
            epoch = settled(server, epoch)
            assert shown(server) == told, product


def wait_for_member(server: Server, epoch: int, **fields: Any) -> None:
    """Wait until a heartbeat of the member is taken."""
    deadline = time.monotonic() + SECONDS_MAX
    while (told := Player(server).heard("g", "a", epoch, **fields)).error_code in NOT_YET:
        assert time.monotonic() < deadline, told
        time.sleep(0.1)
    assert not told.error_code, told


def settled(server: Server, epoch: int) -> int:
    """The epoch of the member once its group is stable: the hashes of topics that the two write are different."""
    deadline, player = time.monotonic() + SECONDS_MAX, Player(server)
    owned = tasks(("0", [0, 1, 2]), ("1", [0, 1, 2]))
    while True:
        told = player.heard("g", "a", epoch, active_tasks=owned, standby_tasks=[], warmup_tasks=[])
        assert not told.error_code, told
        epoch = told.member_epoch
        (group,) = ask(server.address, StreamsGroupDescribeRequest(["g"]), StreamsGroupDescribeResponse).groups
        if group.group_state == "Stable":
            return epoch
        assert time.monotonic() < deadline, group
        time.sleep(0.1)


def shown(server: Server) -> Told:
    player = Player(server)
    player.describe("g")
    return player.told
