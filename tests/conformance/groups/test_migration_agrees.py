"""Groups that change their protocol while they have members (KIP-848): the same requests to Kavka and to Apache Kafka,
the same answers, and the same records in `__consumer_offsets`.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka import TopicPartition

from kavka_broker.core.group.embedded_protocol import read_assignment
from kavka_broker.protocol.coordinator_records import unframe
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.add_offsets_to_txn_request import AddOffsetsToTxnRequest
from kavka_broker.protocol.messages.add_offsets_to_txn_response import AddOffsetsToTxnResponse
from kavka_broker.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kavka_broker.protocol.messages.create_topics_response import CreateTopicsResponse
from kavka_broker.protocol.messages.describe_groups_request import DescribeGroupsRequest
from kavka_broker.protocol.messages.describe_groups_response import DescribeGroupsResponse
from kavka_broker.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from kavka_broker.protocol.messages.find_coordinator_response import FindCoordinatorResponse
from kavka_broker.protocol.messages.group.consumer_group_metadata_value import ConsumerGroupMetadataValue
from kavka_broker.protocol.messages.group.consumer_group_target_assignment_metadata_value import (
    ConsumerGroupTargetAssignmentMetadataValue,
)
from kavka_broker.protocol.messages.group.group_metadata_value import GroupMetadataValue
from kavka_broker.protocol.messages.group.offset_commit_value import OffsetCommitValue
from kavka_broker.protocol.messages.heartbeat_request import HeartbeatRequest
from kavka_broker.protocol.messages.heartbeat_response import HeartbeatResponse
from kavka_broker.protocol.messages.init_producer_id_request import InitProducerIdRequest
from kavka_broker.protocol.messages.init_producer_id_response import InitProducerIdResponse
from kavka_broker.protocol.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from kavka_broker.protocol.messages.join_group_response import JoinGroupResponse
from kavka_broker.protocol.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from kavka_broker.protocol.messages.leave_group_response import LeaveGroupResponse
from kavka_broker.protocol.messages.list_groups_request import ListGroupsRequest
from kavka_broker.protocol.messages.list_groups_response import ListGroupsResponse
from kavka_broker.protocol.messages.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment
from kavka_broker.protocol.messages.sync_group_response import SyncGroupResponse
from kavka_broker.protocol.messages.txn_offset_commit_request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kavka_broker.protocol.messages.txn_offset_commit_response import TxnOffsetCommitResponse
from tests.conformance.groups.test_consumer_groups_agree import FULL, NOT_YET, Player, Told, wait_for_groups
from tests.support.asking import ask
from tests.support.both import Both, running_both
from tests.support.servers import Server
from tests.unit.consumer_group.classic import assignment, subscription

pytestmark = [pytest.mark.java, pytest.mark.slow]

SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "1",
    "group.consumer.assignment.interval.ms": "0",
}
PARTITIONS = 6
SESSION_MS, REBALANCE_MS = 60_000, 120_000  # no member is missed
SECONDS_MAX = 60.0
OFFSETS = "__consumer_offsets"


class Mixed(Player):
    """One server, asked by members of both protocols. Ids that it has made are told by the names of their members."""

    def __init__(self, server: Server) -> None:
        super().__init__(server)
        self.ids: dict[str, str] = {}  # by the name of the member

    def name_of(self, member_id: str) -> str:
        return next((name for name, known in self.ids.items() if known == member_id), member_id)

    def id_of(self, name: str) -> str:
        return self.ids.get(name, name)

    def join(
        self,
        group: str,
        name: str,
        owned: Any = (),
        *,
        instance: str | None = None,
        is_new: bool = False,
        kind: str = "consumer",
        protocols: Any = None,
        version: int = 9,
        session_ms: int = SESSION_MS,
    ) -> JoinGroupResponse:
        """A JoinGroup; one that is new is given its id, and comes again with it where it is asked to."""
        said = protocols if protocols is not None else [("range", subscription(owned=owned))]
        offered = [JoinGroupRequestProtocol(*one) for one in said]
        member_id = "" if is_new else self.id_of(name)
        while True:
            request = JoinGroupRequest(group, session_ms, REBALANCE_MS, member_id, instance, kind, offered)
            answer = ask(self.address, request, JoinGroupResponse, version)
            if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
                member_id = answer.member_id
            elif answer.error_code not in NOT_YET:
                break
        if is_new and not answer.error_code:
            self.ids[name] = answer.member_id
        members = sorted((self.name_of(one.member_id), one.metadata) for one in answer.members)
        self.told.append((
            "join", ErrorCode(answer.error_code).name, answer.generation_id, answer.protocol_type,
            answer.protocol_name, self.name_of(answer.leader), self.name_of(answer.member_id), members,
            answer.skip_assignment,
        ))  # fmt: skip
        return answer

    def sync(
        self, group: str, name: str, generation: int, *, kind: Any = "consumer", protocol: Any = "range", **given: bytes
    ) -> None:
        assignments = [SyncGroupRequestAssignment(self.id_of(one), assigned) for one, assigned in given.items()]
        request = SyncGroupRequest(group, generation, self.id_of(name), None, kind, protocol, assignments)
        answer = ask(self.address, request, SyncGroupResponse, 5)
        self.told.append((
            "sync", ErrorCode(answer.error_code).name, answer.protocol_type, answer.protocol_name, answer.assignment,
        ))  # fmt: skip

    def heartbeat(self, group: str, name: str, generation: int, instance: str | None = None) -> None:
        request = HeartbeatRequest(group, generation, self.id_of(name), instance)
        answer = ask(self.address, request, HeartbeatResponse)
        self.told.append(("heartbeat", ErrorCode(answer.error_code).name))

    def leave(self, group: str, *members: tuple[str, str | None], version: int = 5) -> None:
        if version < 3:
            request = LeaveGroupRequest(group, self.id_of(members[0][0]))
        else:
            request = LeaveGroupRequest(group, "", [MemberIdentity(self.id_of(one), which) for one, which in members])
        answer = ask(self.address, request, LeaveGroupResponse, version)
        left = [(one.group_instance_id, ErrorCode(one.error_code).name) for one in answer.members]
        self.told.append(("leave", ErrorCode(answer.error_code).name, left))

    def show(self, group: str) -> None:
        """What tools of either kind are told."""
        before = len(self.told)
        self.describe(group)
        shown = self.told[before]
        self.told[before] = (*shown[:4], sorted((self.name_of(one[0]), *one[1:]) for one in shown[4]))
        for version in (5, 6):
            (told,) = ask(self.address, DescribeGroupsRequest([group]), DescribeGroupsResponse, version).groups
            members = sorted(
                (self.name_of(one.member_id), one.group_instance_id, one.member_metadata, one.member_assignment)
                for one in told.members
            )
            self.told.append((
                told.error_code, told.error_message, told.group_state, told.protocol_type, told.protocol_data, members,
            ))  # fmt: skip
        listed = ask(self.address, ListGroupsRequest(), ListGroupsResponse, 5).groups
        self.told.append(
            tuple((one.protocol_type, one.group_state, one.group_type) for one in listed if one.group_id == group)
        )

    def commit_in_transaction(self, group: str, name: str, generation: int, *indexes: int) -> None:
        transactional_id = f"of-{group}-{len(self.told)}"
        producer = self.producer_of(transactional_id)
        add = AddOffsetsToTxnRequest(transactional_id, *producer, group)
        while (added := ask(self.address, add, AddOffsetsToTxnResponse, 3)).error_code in NOT_YET:
            time.sleep(0.1)
        assert not added.error_code, added
        topic = TxnOffsetCommitRequestTopic(
            "t", partitions=[TxnOffsetCommitRequestPartition(index, 5) for index in indexes]
        )
        request = TxnOffsetCommitRequest(
            transactional_id, group, *producer, generation, self.id_of(name), None, [topic]
        )
        told = ask(self.address, request, TxnOffsetCommitResponse, 4)
        codes = [ErrorCode(one.error_code).name for topic in told.topics for one in topic.partitions]
        self.told.append(("transaction", codes))

    def producer_of(self, transactional_id: str) -> tuple[int, int]:
        deadline = time.monotonic() + SECONDS_MAX
        find = FindCoordinatorRequest(key_type=1, coordinator_keys=[transactional_id])
        while True:
            ask(self.address, find, FindCoordinatorResponse)
            made = ask(self.address, InitProducerIdRequest(transactional_id, 60_000), InitProducerIdResponse, 4)
            if not made.error_code:
                return made.producer_id, made.producer_epoch
            assert time.monotonic() < deadline, made
            time.sleep(0.1)

    # --- the log ------------------------------------------------------------------------------------------------

    def records(self, group: str) -> dict[str, str]:
        """The last record of each key of a group, without times, hashes and ids that are the server's own."""
        host, port = self.address
        consumer = confluent_kafka.Consumer({
            "bootstrap.servers": f"{host}:{port}", "group.id": "reader", "enable.auto.commit": False,
            "auto.offset.reset": "earliest", "enable.partition.eof": True,
        })  # fmt: skip
        consumer.assign([TopicPartition(OFFSETS, 0, 0)])
        found: dict[str, str] = {}
        deadline = time.monotonic() + SECONDS_MAX
        while time.monotonic() < deadline:
            message = consumer.poll(1.0)
            if message is not None and message.error() is not None:
                break
            raw = None if message is None else message.key()
            if message is None or raw is None:
                continue
            key, value = unframe(raw, message.value())
            if group in (getattr(key, "group", None), getattr(key, "group_id", None)):
                found[self.plain(str(key))] = "gone" if value is None else self.plain(str(without_times(value)))
        consumer.close()
        return {key: value for key, value in sorted(found.items()) if value != "gone"}

    def plain(self, text: str) -> str:
        for name, member_id in self.ids.items():
            text = text.replace(member_id, name)
        return text.replace(str(self.topic_id), "the id of t")


def without_times(value: Message) -> Message:
    if isinstance(value, GroupMetadataValue):
        value.current_state_timestamp = 0
        value.members.sort(key=lambda member: member.group_instance_id or "")
        value.leader = "any"  # in Apache Kafka it is a member by the order of a hash map of ids
    elif isinstance(value, OffsetCommitValue):
        value.commit_timestamp = 0
    elif isinstance(value, ConsumerGroupMetadataValue):
        value.metadata_hash = 0
    elif isinstance(value, ConsumerGroupTargetAssignmentMetadataValue):
        value.assignment_timestamp = 0
    return value


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    with running(tmp_path_factory) as pair:
        yield pair


@contextmanager
def running(tmp_path_factory: pytest.TempPathFactory, **more: str) -> Iterator[Both]:
    with running_both(tmp_path_factory.mktemp("both"), {**SETTINGS, **more}) as pair:
        pair.ask(CreateTopicsRequest([CreatableTopic("t", PARTITIONS, 1)]), CreateTopicsResponse)
        for server in pair:
            wait_for_groups(server)
        yield pair


def agreed(both: Both, story: Any) -> Told:
    players = [Mixed(server) for server in both]
    for player in players:
        story(player)
    ours, theirs = (player.told for player in players)
    assert len(ours) == len(theirs)
    differing = [
        f"{number}: {one}\n   not {other}\n"
        for number, (one, other) in enumerate(zip(ours, theirs, strict=True))
        if one != other
    ]
    assert not differing, "\n".join(differing)
    return ours


def stable(player: Mixed, group: str) -> None:
    """A classic group of one member, that has everything, in generation 1."""
    player.join(group, "A", is_new=True)
    player.sync(group, "A", 1, A=assignment(*range(PARTITIONS)))


def kept(player: Mixed) -> list[int]:
    """What the last sync has told."""
    told = read_assignment(player.told[-1][-1])
    return [index for place in told.assigned_partitions for index in place.partitions]


def upgrade(player: Mixed, group: str) -> int:
    """Turn the group by a member of the new protocol, until all is settled; returns the epoch."""
    stable(player, group)
    epoch = player.beat(group, "C", 0, **FULL)
    player.join(group, "A", range(PARTITIONS))
    player.sync(group, "A", 1)
    player.join(group, "A", kept(player))
    player.sync(group, "A", epoch)
    player.beat(group, "C", epoch)
    return epoch


def test_a_classic_group_becomes_a_consumer_group_and_a_classic_one_again(both: Both) -> None:
    def story(player: Mixed) -> None:
        stable(player, "there")
        player.show("there")
        epoch = player.beat("there", "C", 0, **FULL)
        player.show("there")
        player.told.append(("records", player.records("there")))
        for generation in (1, 2, 0):
            player.heartbeat("there", "A", generation)
        for name in ("C", "stranger"):
            player.heartbeat("there", name, 1)
        player.heartbeat("there", "A", 1, instance="i")
        player.sync("there", "A", 1)
        player.commit("there", player.id_of("A"), 1, 0, version=7)
        player.fetch("there", player.id_of("A"), 1)
        player.join("there", "A", range(PARTITIONS))
        player.show("there")
        player.heartbeat("there", "A", 1)
        for kind, protocol in (("connect", "range"), ("consumer", "sticky")):
            player.sync("there", "A", 1, kind=kind, protocol=protocol)
        player.sync("there", "A", 7)
        player.sync("there", "A", 1)
        has = kept(player)
        player.beat("there", "C", epoch)
        player.join("there", "A", has)
        player.heartbeat("there", "A", epoch)
        player.sync("there", "A", epoch)
        player.beat("there", "C", epoch)
        player.show("there")
        lost = next(index for index in range(PARTITIONS) if index not in has)
        for generation in (epoch, 1, epoch + 1, -1):
            player.commit("there", player.id_of("A"), generation, has[0], version=8)
            player.commit("there", player.id_of("A"), generation, has[0], lost, version=9)
            player.fetch("there", player.id_of("A"), generation)
            player.commit_in_transaction("there", "A", generation, has[0])
            player.commit_in_transaction("there", "A", generation, has[0], lost)
        player.commit("there", "C", epoch, lost, version=8)
        player.told.append(("records", player.records("there")))
        player.beat("there", "C", -1)
        player.show("there")
        player.told.append(("records", player.records("there")))
        player.heartbeat("there", "A", epoch)
        player.heartbeat("there", "C", epoch)
        player.join("there", "A", has)
        player.sync("there", "A", epoch + 1, A=assignment(*range(PARTITIONS)))
        player.show("there")
        player.told.append(("records", player.records("there")))

    told = agreed(both, story)
    assert ("heartbeat", "REBALANCE_IN_PROGRESS") in told
    assert ("heartbeat", "ILLEGAL_GENERATION") in told
    assert ("heartbeat", "UNKNOWN_MEMBER_ID") in told


def test_joins_that_a_consumer_group_cannot_take(both: Both) -> None:
    def story(player: Mixed) -> None:
        upgrade(player, "refused")
        player.join("refused", "B", kind="connect")
        player.join("refused", "B", protocols=[])
        player.join("refused", "B", protocols=[("sticky", subscription())])
        player.join("refused", "B", protocols=[("range", b"\0")])
        player.join("refused", "B", session_ms=1)
        player.join("refused", "B", instance="i")
        player.join("refused", "B", protocols=[("sticky", subscription()), ("range", subscription())])
        player.show("refused")
        player.join("refused", "D", is_new=True, version=3)
        player.join("refused", "E", is_new=True)

    told = agreed(both, story)
    assert "INCONSISTENT_GROUP_PROTOCOL" in {line[1] for line in told if line[0] == "join"}


def test_groups_that_cannot_be_upgraded(both: Both) -> None:
    def story(player: Mixed) -> None:
        player.join("of-connect", "A", is_new=True, kind="connect")
        player.beat("of-connect", "C", 0, **FULL)
        player.join("malformed", "A", is_new=True)
        player.sync("malformed", "A", 1, A=b"\0")
        player.beat("malformed", "C", 0, **FULL)
        player.join("custom", "A", is_new=True)
        player.sync("custom", "A", 1, A=assignment(0, user_data=b"mine"))
        told = len(player.told)
        player.beat("custom", "C", 0, **FULL)
        code, problem, *rest = player.told[told]
        player.told[told] = (code, "custom assignor is in use" in problem, *rest)
        player.join("unread", "A", is_new=True, protocols=[("range", b"\0\3\0")])
        player.sync("unread", "A", 1, A=assignment(0))
        player.beat("unread", "C", 0, **FULL)
        player.beat("unread", "C", 3)

    told = agreed(both, story)
    assert sum(line[0] == "GROUP_ID_NOT_FOUND" for line in told) == 5


def test_a_group_is_upgraded_while_it_rebalances(both: Both) -> None:
    def story(player: Mixed) -> None:
        player.join("hasty", "A", is_new=True)
        player.beat("hasty", "C", 0, **FULL)
        code, problem, epoch, has_interval, assigned = player.told.pop()
        player.told.append((code, problem, epoch, has_interval, [len(indexes) for indexes in assigned]))
        player.sync("hasty", "A", 1, A=assignment(*range(PARTITIONS)))
        player.heartbeat("hasty", "A", 1)
        player.join("hasty", "A")
        player.sync("hasty", "A", epoch)
        player.told[-1] = (*player.told[-1][:4], len(kept(player)))
        player.heartbeat("hasty", "A", epoch)

    agreed(both, story)


def test_static_members_change_their_protocol(both: Both) -> None:
    def story(player: Mixed) -> None:
        epoch = upgrade(player, "static")
        player.join("static", "S1", is_new=True, instance="s")
        player.show("static")
        player.beat("static", "S2", 0, instance_id="s", **FULL)
        player.show("static")
        player.heartbeat("static", "S1", epoch, instance="s")
        player.join("static", "S1", instance="s")
        player.beat("static", "S3", 0, instance_id="s", **FULL)
        player.join("static", "S4", is_new=True, instance="s")
        player.show("static")
        for _ in range(2):
            player.join("static", "A", [0, 1])
        player.join("static", "S4", instance="s")
        player.leave("static", ("S2", "s"), ("stranger", None), ("", "x"), ("S4", "s"), ("C", None))
        player.show("static")

    agreed(both, story)


@pytest.mark.parametrize("topics", [("t",), ("t", "u")], ids=["the same topics", "other topics"])
def test_a_static_member_takes_the_group_back_with_it(both: Both, topics: tuple[str, ...]) -> None:
    group = f"taken-{len(topics)}"

    def story(player: Mixed) -> None:
        stable(player, group)
        epoch = player.beat(group, "S1", 0, instance_id="s", **FULL)
        player.join(group, "A", range(PARTITIONS))
        player.sync(group, "A", 1)
        player.join(group, "A", kept(player))
        player.sync(group, "A", epoch)
        player.beat(group, "S1", epoch, instance_id="s")
        joined = player.join(group, "S2", is_new=True, instance="s", protocols=[("range", subscription(topics))])
        player.show(group)
        player.sync(group, "S2", joined.generation_id)
        player.heartbeat(group, "A", epoch)
        player.heartbeat(group, "S2", epoch, instance="s")
        player.told.append(("records", player.records(group)))

    agreed(both, story)


def test_members_leave_a_mixed_group(both: Both) -> None:
    def story(player: Mixed) -> None:
        upgrade(player, "left")
        player.join("left", "B", is_new=True)
        player.leave("left", ("B", None), version=2)
        player.leave("left", ("B", None), version=2)
        player.join("left", "D", is_new=True)
        player.leave("left", ("D", None), ("D", None), ("A", "i"), ("A", None))
        player.show("left")
        player.leave("left", ("C", None))
        player.show("left")

    agreed(both, story)


def test_a_policy_keeps_groups_as_they_are(tmp_path_factory: pytest.TempPathFactory) -> None:
    def story(player: Mixed) -> None:
        stable(player, "classic")
        player.beat("classic", "C", 0, **FULL)
        player.beat("new", "C", 0, **FULL)
        player.join("new", "A", is_new=True)
        player.show("new")

    with running(tmp_path_factory, **{"group.consumer.migration.policy": "disabled"}) as pair:
        told = agreed(pair, story)
    assert {"GROUP_ID_NOT_FOUND", "INCONSISTENT_GROUP_PROTOCOL"} <= {one for line in told for one in line[:2]}
