"""Gates in a running node: what they let through, refuse and hide; rules that come and go under a client's feet.

The test's own client comes from 127.0.0.1, which may do everything; the other from 127.0.0.2.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from kavka_broker.core.authorization.access_rules import Rule, RuleFilter
from kavka_broker.core.authorization.acl_types import Operation
from kavka_broker.core.authorization.authorizer import Authorizer
from kavka_broker.core.authorization.settings import STANDARD
from kavka_broker.core.consumer_group.settings import SUBSCRIBED_TOPICS_MAX
from kavka_broker.core.metadata.decide.acls import create, delete
from kavka_broker.core.metadata.image.acls import Acls
from kavka_broker.core.metadata.image.topic_names import INTERNAL
from kavka_broker.dispatch.access.gates import ITEMS_PER_TURN
from kavka_broker.dispatch.access.table import GATES, guard
from kavka_broker.dispatch.handlers import load
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages import offset_fetch_request as offsets
from kavka_broker.protocol.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from kavka_broker.protocol.messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse
from kavka_broker.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kavka_broker.protocol.messages.create_topics_response import CreateTopicsResponse
from kavka_broker.protocol.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kavka_broker.protocol.messages.delete_topics_response import DeleteTopicsResponse
from kavka_broker.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kavka_broker.protocol.messages.fetch_response import FetchResponse
from kavka_broker.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from kavka_broker.protocol.messages.find_coordinator_response import FindCoordinatorResponse
from kavka_broker.protocol.messages.init_producer_id_request import InitProducerIdRequest
from kavka_broker.protocol.messages.init_producer_id_response import InitProducerIdResponse
from kavka_broker.protocol.messages.metadata.access_control_entry_record import AccessControlEntryRecord
from kavka_broker.protocol.messages.metadata.remove_access_control_entry_record import (
    RemoveAccessControlEntryRecord,
)
from kavka_broker.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kavka_broker.protocol.messages.metadata_response import MetadataResponse
from kavka_broker.protocol.messages.offset_fetch_response import OffsetFetchResponse
from kavka_broker.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kavka_broker.protocol.messages.produce_response import ProduceResponse
from kavka_broker.protocol.uuids import ZERO
from kavka_broker.request.produce_policy import ADMIN_CLIENT_ID
from kavka_broker.runtime.authorization import AclFollower
from tests.support.in_process import InProcess, batch, following, running
from tests.support.waiting import until

TOPIC, GROUP, CLUSTER, TRANSACTIONAL_ID = 2, 3, 4, 5
ALL, READ, WRITE, CREATE, DELETE, DESCRIBE, CLUSTER_ACTION, TWO_PHASE_COMMIT = 2, 3, 4, 5, 6, 8, 9, 15
DENY, ALLOW = 2, 3
HERE, ELSEWHERE = "127.0.0.1", "127.0.0.2"
EVERYTHING = [
    Rule(kind, "kafka-cluster" if kind == CLUSTER else "*", 3, "User:*", HERE, ALL, ALLOW) for kind in (2, 3, 4, 5)
]
SETTINGS = {"authorizer.class.name": STANDARD, "allow.everyone.if.no.acl.found": "true"}


def play(
    directory: Path, scenario: Callable[[InProcess], Awaitable[None]], settings: Mapping[str, str] = SETTINGS
) -> None:
    async def run() -> None:
        async with running(directory, settings) as inside:
            await inside.create("t")
            await inside.create("hidden")
            await allow(inside, *EVERYTHING)
            await scenario(inside)

    asyncio.run(run())


async def allow(inside: InProcess, *rules: Rule) -> None:
    controller = inside.broker.active
    ids = [controller.new_uuid() for _ in rules]
    await controller.submit(lambda metadata, _: create(metadata.acls, rules, ids))


async def take_back(inside: InProcess, rule: Rule) -> None:
    chosen = RuleFilter(*rule)
    await inside.broker.active.submit(lambda metadata, _: delete(metadata.acls, [chosen]))


def rule(operation: int, name: str = "t", kind: int = TOPIC, permission: int = ALLOW) -> Rule:
    return Rule(kind, name, 3, "User:ANONYMOUS", ELSEWHERE, operation, permission)


def produce(*topics: str, acks: int = 1) -> ProduceRequest:
    data = [TopicProduceData(name, partition_data=[PartitionProduceData(0, batch(b"v"))]) for name in topics]
    return ProduceRequest(None, acks, 1000, data)


def written(answer: ProduceResponse) -> dict[str, int]:
    return {topic.name: topic.partition_responses[0].error_code for topic in answer.responses}


def test_a_session_of_fetches_is_asked_for_its_rights_at_each(tmp_path: Path) -> None:
    async def scenario(inside: InProcess) -> None:
        client = await inside.connect(source=ELSEWHERE)

        async def code(*, session_id: int = 0, epoch: int = 0) -> tuple[int, list[int]]:
            topics = [] if session_id else [FetchTopic("t", partitions=[FetchPartition(0, partition_max_bytes=100)])]
            request = FetchRequest(max_bytes=100, session_id=session_id, session_epoch=epoch, topics=topics)
            answer = await client.call(request, FetchResponse, 12)
            return answer.session_id, [data.error_code for topic in answer.responses for data in topic.partitions]

        session_id, codes = await code()
        assert codes == [29]
        await allow(inside, rule(READ))
        assert (await code(session_id=session_id, epoch=1))[1] in ([], [0])
        await take_back(inside, rule(READ))
        assert (await code(session_id=session_id, epoch=2))[1] == [29]

    play(tmp_path, scenario)


def test_each_topic_of_a_produce_stands_alone(tmp_path: Path) -> None:
    async def scenario(inside: InProcess) -> None:
        client = await inside.connect(source=ELSEWHERE)
        await allow(inside, rule(WRITE))
        assert written(await client.call(produce("t", "hidden"), ProduceResponse, 9)) == {"t": 0, "hidden": 29}
        names = ["t", *(f"no-{number}" for number in range(ITEMS_PER_TURN))]
        codes = written(await client.call(produce(*names), ProduceResponse, 9))
        assert (codes.pop("t"), set(codes.values()), len(codes)) == (0, {29}, ITEMS_PER_TURN)
        codes = written(await client.call(produce(*names[1:], "hidden"), ProduceResponse, 9))
        assert (set(codes.values()), len(codes)) == ({29}, ITEMS_PER_TURN + 1)
        assert written(await client.call(produce("t"), ProduceResponse, 9)) == {"t": 0}
        client.send(produce("hidden", acks=0), 9)
        assert await client.is_closed()

    play(tmp_path, scenario)


def test_topics_are_shown_and_created_as_the_rules_say(tmp_path: Path) -> None:
    async def scenario(inside: InProcess) -> None:
        client = await inside.connect(source=ELSEWHERE)
        await allow(inside, rule(DESCRIBE), rule(DESCRIBE, "new"))

        async def shown(*names: str, version: int = 12) -> dict[str | None, int]:
            wanted = [MetadataRequestTopic(name=name) for name in names] or (None if version else [])
            answer = await client.call(MetadataRequest(wanted), MetadataResponse, version)
            return {topic.name: topic.error_code for topic in answer.topics}

        assert await shown() == await shown(version=0) == {"t": 0}
        assert await shown("t", "hidden", "new") == {"t": 0, "hidden": 29, "new": 29}
        assert await shown("hidden", version=0) == {"hidden": 29}
        assert await shown("t", "hidden", version=0) == {"t": 0, "hidden": 29}
        await allow(inside, rule(CREATE, "new"))
        assert await shown("new") == {"new": 3}
        await until(lambda: not inside.broker.creating)
        assert await shown("new") == {"new": 0}

    play(tmp_path, scenario)


@pytest.mark.parametrize("version", [10, 11])
@pytest.mark.parametrize("is_there", [True, False])
def test_before_topics_are_asked_for_by_their_ids_an_id_is_refused(
    tmp_path: Path, version: int, *, is_there: bool
) -> None:
    """Whatever the rules say: an answer of these versions that hid the name could not be written."""

    async def scenario(inside: InProcess) -> None:
        client = await inside.connect(source=ELSEWHERE)
        topic_id = topic_id_of(inside, "hidden") if is_there else b"i" * 16
        wanted = [MetadataRequestTopic(topic_id, None), MetadataRequestTopic(b"j" * 16, "hidden")]
        answer = await client.call(MetadataRequest(wanted), MetadataResponse, version)
        assert [(topic.error_code, topic.name) for topic in answer.topics] == [
            (ErrorCode.INVALID_REQUEST, ""),
            (ErrorCode.INVALID_REQUEST, "hidden"),
        ]

    play(tmp_path, scenario)


def test_very_many_names_are_judged_in_turns(tmp_path: Path) -> None:
    async def scenario(inside: InProcess) -> None:
        client = await inside.connect(source=ELSEWHERE)
        await allow(inside, rule(CREATE, "new"))
        names = ["new", *(f"no-{number}" for number in range(ITEMS_PER_TURN))]
        request = CreateTopicsRequest([CreatableTopic(name, 1, 1) for name in names], 5000)
        answer = await client.call(request, CreateTopicsResponse, 5)
        codes = {topic.name: topic.error_code for topic in answer.topics}
        assert codes.pop("new") == 0
        assert set(codes.values()) == {29}
        (made,) = (topic for topic in answer.topics if topic.name == "new")
        assert (made.topic_config_error_code, made.configs, made.num_partitions) == (29, None, -1)

    play(tmp_path, scenario)


def test_offsets_are_told_of_topics_that_may_be_described(tmp_path: Path) -> None:
    async def scenario(inside: InProcess) -> None:
        client = await inside.connect(source=ELSEWHERE)
        await client.call(MetadataRequest([]), MetadataResponse, 12)
        await allow(inside, rule(DESCRIBE, "g", GROUP), rule(DESCRIBE))
        wanted = [offsets.OffsetFetchRequestTopic(name, [0]) for name in ("t", "hidden")]
        answer = await client.call(offsets.OffsetFetchRequest("g", wanted), OffsetFetchResponse, 5)
        hidden = [topic.partitions[0].error_code for topic in answer.topics if topic.name == "hidden"]
        assert answer.error_code or hidden == [29]
        old = await client.call(offsets.OffsetFetchRequest("h", wanted), OffsetFetchResponse, 1)
        assert {topic.partitions[0].error_code for topic in old.topics} == {30}

    play(tmp_path, scenario)


def test_an_expression_of_a_consumer_group_matches_topics_that_may_be_described(tmp_path: Path) -> None:
    async def scenario(inside: InProcess) -> None:
        client = await inside.connect(source=ELSEWHERE)
        await allow(inside, rule(READ, "g", GROUP), rule(DESCRIBE, "g", GROUP), rule(DESCRIBE))

        async def beat(**fields: Any) -> ConsumerGroupHeartbeatResponse:
            full = {"rebalance_timeout_ms": 9_000, "topic_partitions": [], **fields}
            request = ConsumerGroupHeartbeatRequest("g", "m", 0, **full)
            return await client.call(request, ConsumerGroupHeartbeatResponse, 1)

        find = FindCoordinatorRequest(key_type=0, coordinator_keys=["g"])
        await client.call(find, FindCoordinatorResponse, 4)  # makes the topic of offsets
        await until(lambda: any(not shard.is_loading for shard in inside.broker.groups.led.by_partition.values()))
        answer = await beat(subscribed_topic_regex="t|hidden")
        assert answer.assignment is not None
        assert len(answer.assignment.topic_partitions) == 1
        group = inside.broker.groups.shard("g").consumers.existing("g")
        assert group.matched == {"t|hidden": {"t"}}
        names = [f"no-{number}" for number in range(ITEMS_PER_TURN)]
        assert (await beat(subscribed_topic_names=["t", *names])).error_code == 29
        assert (await beat(subscribed_topic_names=["t", "hidden"])).error_code == 29
        assert (await beat(subscribed_topic_names=["t"] * (SUBSCRIBED_TOPICS_MAX + 1))).error_code == 42
        assert (await beat(subscribed_topic_names=["t"] * (ITEMS_PER_TURN + 1))).error_code == 0

    play(tmp_path, scenario)


def test_a_topic_that_is_not_there_is_told_as_such_to_who_may_describe_and_not_delete_it(tmp_path: Path) -> None:
    async def scenario(inside: InProcess) -> None:
        client = await inside.connect(source=ELSEWHERE)
        await allow(inside, rule(DESCRIBE), rule(DESCRIBE, "nowhere"))
        names = ["t", "hidden", "nowhere", "unheard-of"]
        answer = await client.call(DeleteTopicsRequest(topic_names=names, timeout_ms=1000), DeleteTopicsResponse, 5)
        found = {result.name: result.error_code for result in answer.responses}
        assert found == {"t": 29, "hidden": 29, "nowhere": 3, "unheard-of": 29}

    play(tmp_path, scenario)


@pytest.mark.parametrize("operation", [ALL, DELETE])
def test_who_may_delete_the_cluster_may_delete_each_topic_whatever_is_said_of_it(
    tmp_path: Path, operation: int
) -> None:
    async def scenario(inside: InProcess) -> None:
        client = await inside.connect(source=ELSEWHERE)
        denied = rule(ALL, "hidden", permission=DENY)
        await allow(inside, rule(operation, "kafka-cluster", CLUSTER), denied)
        known = {name: topic_id_of(inside, name) for name in ("t", "hidden")}
        by_id = DeleteTopicsRequest([DeleteTopicState(None, known["t"])], timeout_ms=1000)
        assert [result.error_code for result in (await client.call(by_id, DeleteTopicsResponse, 6)).responses] == [0]
        by_name = DeleteTopicsRequest(topic_names=["hidden", "nowhere"], timeout_ms=1000)
        answer = await client.call(by_name, DeleteTopicsResponse, 5)
        assert {result.name: result.error_code for result in answer.responses} == {"hidden": 0, "nowhere": 3}

    play(tmp_path, scenario)


def test_by_its_id_a_topic_is_deleted_without_the_right_to_describe_it(tmp_path: Path) -> None:
    async def scenario(inside: InProcess) -> None:
        client = await inside.connect(source=ELSEWHERE)
        await allow(inside, rule(ALL, "*"), rule(DESCRIBE, "hidden", permission=DENY))
        known, other = topic_id_of(inside, "hidden"), topic_id_of(inside, "t")
        by_name = DeleteTopicsRequest(topic_names=["hidden"], timeout_ms=1000)
        assert [one.error_code for one in (await client.call(by_name, DeleteTopicsResponse, 5)).responses] == [29]
        wanted = [("both", other), (None, known), (None, ZERO)]
        by_id = DeleteTopicsRequest([DeleteTopicState(*each) for each in wanted], timeout_ms=1000)
        answer = await client.call(by_id, DeleteTopicsResponse, 6)
        assert {result.topic_id: result.error_code for result in answer.responses} == {other: 42, known: 0, ZERO: 42}

    play(tmp_path, scenario)


def topic_id_of(inside: InProcess, name: str) -> bytes:
    topic = inside.broker.metadata.topics.get(name)
    assert topic is not None
    return topic.topic_id


def test_one_topic_that_may_be_written_gives_a_producer_its_id(tmp_path: Path) -> None:
    async def scenario(inside: InProcess) -> None:
        client = await inside.connect(source=ELSEWHERE)
        request = InitProducerIdRequest(None)
        assert (await client.call(request, InitProducerIdResponse, 4)).error_code == 31
        await allow(inside, rule(WRITE, "some other"))
        assert (await client.call(request, InitProducerIdResponse, 4)).error_code == 0

    play(tmp_path, scenario)


def test_a_transaction_that_another_system_ends_takes_a_right_of_its_own(tmp_path: Path) -> None:
    """KIP-939."""

    async def scenario(inside: InProcess) -> None:
        client = await inside.connect(source=ELSEWHERE)

        async def may_init(*, is_two_phase: bool) -> bool:
            request = InitProducerIdRequest("tx", 1_000, enable2_pc=is_two_phase)
            code = (await client.call(request, InitProducerIdResponse, 6)).error_code
            return code != ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED

        await allow(inside, rule(WRITE, "tx", TRANSACTIONAL_ID))
        assert await may_init(is_two_phase=False)
        assert not await may_init(is_two_phase=True)
        await allow(inside, rule(TWO_PHASE_COMMIT, "tx", TRANSACTIONAL_ID))
        assert await may_init(is_two_phase=True)

    play(
        tmp_path,
        scenario,
        {**SETTINGS, "unstable.api.versions.enable": "true", "transaction.two.phase.commit.enable": "true"},
    )


def test_a_controller_judges_a_forwarded_request_by_its_client(tmp_path: Path) -> None:
    """The broker that passes it on may do everything, and has no authorizer itself."""

    async def run() -> None:
        async with running(tmp_path / "1", SETTINGS) as first, following(tmp_path / "2", first) as second:
            await allow(first, *EVERYTHING)
            codes = []
            for source in (ELSEWHERE, HERE):
                client = await second.connect(source=source)
                request = CreateTopicsRequest([CreatableTopic("new", 1, 1)], 5000)
                codes.append((await client.call(request, CreateTopicsResponse, 5)).topics[0].error_code)
            assert codes == [29, 0]

    asyncio.run(run())


def test_only_super_users_come_in_before_the_rules_are_known() -> None:
    authorizer, acls = Authorizer(["User:root"], allows_unruled=True), Acls()
    record = AccessControlEntryRecord(b"1" * 16, *rule(READ)._replace(permission=DENY))
    acls.replay(record)
    follower = AclFollower(authorizer, acls)

    def decided(principal: str) -> tuple[bool, bool]:
        asked = (principal, ELSEWHERE, Operation.READ, TOPIC)
        return authorizer.allows(*asked, "u"), authorizer.allows_some(*asked)

    assert (decided("User:root"), decided("User:ANONYMOUS")) == ((True, True), (False, False))
    follower.caught_up()
    assert decided("User:ANONYMOUS") == (True, True)
    asked = ("User:ANONYMOUS", ELSEWHERE, Operation.READ, TOPIC, "t")
    assert not authorizer.allows(*asked)
    follower.apply([record])  # a snapshot tells it again
    follower.apply([RemoveAccessControlEntryRecord(record.id)])
    assert authorizer.allows(*asked)


def test_every_api_has_a_gate_or_is_open_on_purpose() -> None:
    apis = load()
    assert set(apis) <= set(GATES)
    assert guard(apis, None) is apis
    with pytest.raises(KeyError):
        guard({9999: apis[0]}, Authorizer())


@pytest.mark.parametrize("topic", sorted(INTERNAL))
def test_no_client_id_is_the_right_of_a_node(tmp_path: Path, topic: str) -> None:
    """By WRITE on topics and a client id that anybody may choose, a client told what it liked in the audit trail."""

    async def scenario(inside: InProcess) -> None:
        await inside.create(topic)
        client = await inside.connect(source=ELSEWHERE)

        async def code() -> int:
            return written(await client.call(produce(topic), ProduceResponse, 9))[topic]

        denial = rule(CLUSTER_ACTION, "kafka-cluster", CLUSTER, DENY)
        await allow(inside, rule(WRITE, "*"), denial)
        assert await code() == ErrorCode.INVALID_TOPIC_EXCEPTION, "as Apache Kafka answers"
        client.client_id = ADMIN_CLIENT_ID
        assert await code() == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        await take_back(inside, denial)
        await allow(inside, rule(CLUSTER_ACTION, "kafka-cluster", CLUSTER))
        assert await code() == ErrorCode.NONE
        await take_back(inside, rule(WRITE, "*"))
        await allow(inside, rule(WRITE, "*", permission=DENY))
        assert await code() == ErrorCode.TOPIC_AUTHORIZATION_FAILED

    play(tmp_path, scenario)
