"""Streams groups in the protocol of clients: internal topics, endpoints, descriptions, and rights."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from kavka_broker.api.a89_streams_group_describe import description_of
from kavka_broker.core.authorization.access_rules import Rule
from kavka_broker.core.authorization.settings import STANDARD
from kavka_broker.core.metadata.decide.acls import create
from kavka_broker.core.metadata.decide.features import UpdateFeature, update_features
from kavka_broker.core.streams_group.state import StreamsGroup
from kavka_broker.core.streams_group.statuses import StatusCode
from kavka_broker.core.streams_group.topology import InternalTopic, Subtopology, Topology
from kavka_broker.loop.slices import at_once
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages import streams_group_heartbeat_request as sent
from kavka_broker.protocol.messages import streams_group_heartbeat_response as answers
from kavka_broker.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from kavka_broker.protocol.messages.find_coordinator_response import FindCoordinatorResponse
from kavka_broker.protocol.messages.list_groups_request import ListGroupsRequest
from kavka_broker.protocol.messages.list_groups_response import ListGroupsResponse
from kavka_broker.protocol.messages.streams_group_describe_request import StreamsGroupDescribeRequest
from kavka_broker.protocol.messages.streams_group_describe_response import (
    DescribedGroup,
    StreamsGroupDescribeResponse,
)
from kavka_broker.protocol.messages.streams_group_heartbeat_request import StreamsGroupHeartbeatRequest
from kavka_broker.protocol.messages.streams_group_heartbeat_response import StreamsGroupHeartbeatResponse
from kavka_broker.runtime.streams_figures import streams_samples
from tests.support.in_process import Client, InProcess, running
from tests.unit.streams_group.world import topology

TOPIC, GROUP = 2, 3
READ, CREATE, DESCRIBE = 3, 5, 8
DENY, ALLOW = 2, 3
ELSEWHERE = "127.0.0.2"
SETTINGS = {"group.streams.initial.rebalance.delay.ms": "0"}
WITH_RULES = {**SETTINGS, "authorizer.class.name": STANDARD, "allow.everyone.if.no.acl.found": "true"}
LOADING = (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR)


def play(directory: Path, scenario: Callable[[InProcess, Client], Awaitable[None]], *, rules: bool = False) -> None:
    async def run() -> None:
        async with running(directory, WITH_RULES if rules else SETTINGS) as inside:
            await inside.broker.active.submit(
                lambda metadata, _: update_features(metadata, [UpdateFeature("streams.version", 1)])
            )
            await inside.create("t", 2)
            client = await inside.connect(source=ELSEWHERE if rules else "127.0.0.1")
            await client.call(FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]), FindCoordinatorResponse, 6)
            await scenario(inside, client)

    asyncio.run(run())


async def beat(inside: InProcess, client: Client, epoch: int = 0, **said: Any) -> StreamsGroupHeartbeatResponse:
    if epoch == 0:
        tasks: dict[str, Any] = {"active_tasks": [], "standby_tasks": [], "warmup_tasks": []}
        said = {"topology": topology(), "rebalance_timeout_ms": 1_000, "process_id": "p", **tasks, **said}
    request = StreamsGroupHeartbeatRequest("g", "a", epoch, **said)
    while True:
        answer = await client.call(request, StreamsGroupHeartbeatResponse, 0)
        if answer.error_code not in LOADING:
            return answer
        await inside.heard()


async def describe(client: Client) -> DescribedGroup:
    answer = await client.call(StreamsGroupDescribeRequest(["g"], True), StreamsGroupDescribeResponse, 0)
    return answer.groups[0]


async def allow(inside: InProcess, *rules: Rule) -> None:
    controller = inside.broker.active
    ids = [controller.new_uuid() for _ in rules]
    await controller.submit(lambda metadata, _: create(metadata.acls, rules, ids))


def rule(kind: int, name: str, operation: int, permission: int = ALLOW) -> Rule:
    return Rule(kind, name, 3, "User:ANONYMOUS", ELSEWHERE, operation, permission)


def statuses(answer: StreamsGroupHeartbeatResponse) -> dict[int, str]:
    return {status.status_code: status.status_detail for status in answer.status or ()}


async def settled(inside: InProcess, client: Client, **said: Any) -> StreamsGroupHeartbeatResponse:
    """The first answer that has nothing to complain of, with all tasks."""
    answer = await beat(inside, client, **said)
    while statuses(answer):
        assert list(statuses(answer)) == [StatusCode.MISSING_INTERNAL_TOPICS]
        await inside.heard()
        answer = await beat(inside, client, **said)
    return answer


def test_internal_topics_are_created_as_the_topology_has_them(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, client: Client) -> None:
        answer = await settled(inside, client)
        assert [(part.subtopology_id, part.partitions) for part in answer.active_tasks or ()] == [
            ("0", [0, 1]),
            ("1", [0, 1]),
        ]
        assert (answer.standby_tasks, answer.warmup_tasks) == ([], [])
        topics = inside.broker.metadata.topics
        made = {name: topics.get(name) for name in "rc"}
        assert {name: len(topic.partitions) for name, topic in made.items() if topic} == {"r": 2, "c": 2}
        assert inside.broker.metadata.configs.topic("c") == {"cleanup.policy": "compact"}

    play(tmp_path, scenario)


def test_a_topic_that_cannot_be_created_is_told_with_its_reason(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, client: Client) -> None:
        wrong = topology()
        wrong.subtopologies[1].state_changelog_topics[0].topic_configs = [sent.KeyValue("retention.ms", "x")]
        detail = ""
        while "Creation failed" not in detail:
            await inside.heard()
            detail = statuses(await beat(inside, client, topology=wrong))[StatusCode.MISSING_INTERNAL_TOPICS]
        assert "c (" in detail
        assert "retention.ms" in detail

    play(tmp_path, scenario)


def test_endpoints_are_told_with_the_partitions_that_they_serve(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, client: Client) -> None:
        joined = await settled(inside, client, user_endpoint=sent.Endpoint("host", 9), endpoint_information_epoch=-1)
        found = joined.partitions_by_user_endpoint
        assert found is not None
        told = [(endpoint.user_endpoint.host, endpoint.active_partitions) for endpoint in found]
        assert told == [("host", [answers.TopicPartition("t", [0, 1]), answers.TopicPartition("r", [0, 1])])]
        epoch = joined.endpoint_information_epoch
        again = await beat(inside, client, joined.member_epoch, endpoint_information_epoch=epoch)
        assert again.partitions_by_user_endpoint is None

    play(tmp_path, scenario)


def test_a_group_is_described_and_listed(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, client: Client) -> None:
        joined = await settled(inside, client, client_tags=[sent.KeyValue("zone", "z")])
        group = await describe(client)
        assert (group.error_code, group.group_state, group.group_epoch) == (0, "Stable", joined.member_epoch)
        assert group.topology is not None
        assert group.topology.subtopologies is not None
        assert [topic.partitions for topic in group.topology.subtopologies[1].repartition_source_topics] == [2]
        (member,) = group.members
        assert (member.member_id, member.process_id, member.topology_epoch) == ("a", "p", 0)
        assert [(tag.key, tag.value) for tag in member.client_tags] == [("zone", "z")]
        assert member.assignment == member.target_assignment
        listed = await client.call(ListGroupsRequest(), ListGroupsResponse, 5)
        assert [(one.group_id, one.group_type, one.group_state) for one in listed.groups] == [
            ("g", "streams", "Stable")
        ]

    play(tmp_path, scenario)


def test_a_large_topology_is_described_in_slices() -> None:
    stores = tuple(InternalTopic(f"store-{number}") for number in range(5_000))
    group = StreamsGroup("g", topology=Topology(0, (Subtopology("0", ("t",), state_changelog_topics=stores),)))
    steps = sum(1 for _ in description_of(group))
    assert steps >= 5_000 // 250


def test_below_its_level_nothing_is_served(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as inside:
            client = await inside.connect()
            answer = await beat(inside, client)
            assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
            assert (await describe(client)).error_code == ErrorCode.UNSUPPORTED_VERSION

    asyncio.run(scenario())


# --- rights ---------------------------------------------------------------------------------------------------------


def test_a_member_needs_rights_on_its_group_and_all_topics(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, client: Client) -> None:
        await allow(inside, rule(GROUP, "g", READ, DENY))
        assert (await beat(inside, client)).error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED

    play(tmp_path, scenario, rules=True)


@pytest.mark.parametrize("name", ["t", "r", "c"])
def test_a_topic_of_the_topology_that_may_not_be_described_is_refused(tmp_path: Path, name: str) -> None:
    async def scenario(inside: InProcess, client: Client) -> None:
        await settled(inside, client)
        await allow(inside, rule(TOPIC, name, DESCRIBE, DENY))
        assert (await beat(inside, client)).error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        group = await describe(client)
        assert (group.error_code, group.topology, group.members) == (ErrorCode.TOPIC_AUTHORIZATION_FAILED, None, [])

    play(tmp_path, scenario, rules=True)


def test_internal_topics_that_may_not_be_created_are_named(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, client: Client) -> None:
        # A client that no rule lets create on the cluster needs the right on each topic.
        elsewhere = Rule(4, "kafka-cluster", 3, "User:*", "127.0.0.1", 2, ALLOW)
        await allow(inside, rule(TOPIC, "c", CREATE, DENY), rule(TOPIC, "c", DESCRIBE), elsewhere)
        detail = statuses(await beat(inside, client))[StatusCode.MISSING_INTERNAL_TOPICS]
        assert detail == "Internal topics are missing: c, r; Unauthorized to CREATE on topics c."
        assert inside.broker.metadata.topics.get("r") is None

    play(tmp_path, scenario, rules=True)


def test_groups_are_counted_by_their_states(tmp_path: Path) -> None:
    async def scenario(inside: InProcess, client: Client) -> None:
        await settled(inside, client)
        samples = at_once(streams_samples(inside.broker.groups))
        found = {(name, labels): value for name, labels, value in samples}
        prefix = "kafka_server_group_coordinator_metrics_streams_group"
        assert found[f"{prefix}_count", ("Stable",)] == 1
        assert found[f"{prefix}_count", ("Empty",)] == 0
        assert found[f"{prefix}_rebalance_count", ()] >= 1

    play(tmp_path, scenario)
