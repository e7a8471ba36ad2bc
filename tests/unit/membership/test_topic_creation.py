"""Topics that are made because somebody asked for them, together and once."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from kavka_broker.core.config.broker import KEYS, BrokerConfig
from kavka_broker.core.config.definition import Range
from kavka_broker.core.metadata.decide.topics import Created, CreateTopic, create_topics, defaults_of
from kavka_broker.core.metadata.image.topic_names import AUDIT_TOPIC, OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from kavka_broker.membership.channel import ControllerChannel
from kavka_broker.membership.topic_creation import CREATE_MS_MAX, TOGETHER_MAX, TopicMaker, automatic_topic
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.create_topics_request import CreateTopicsRequest
from kavka_broker.protocol.messages.create_topics_response import CreatableTopicResult, CreateTopicsResponse
from kavka_broker.protocol.messages.metadata.topic_record import TopicRecord
from tests.support.cluster import PROPERTIES, cluster, uuid
from tests.support.waiting import turns
from tests.unit.membership.fakes import FakePeers, FakeQuorum, refuse


class Controller:
    """Makes the topics that it does not refuse, when it may."""

    def __init__(self, quorum: FakeQuorum) -> None:
        self.quorum = quorum
        self.asked: list[list[str]] = []
        self.refusals: dict[str, ErrorCode] = {}
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def answer(self, request: Message) -> Message:
        assert isinstance(request, CreateTopicsRequest)
        names = [topic.name for topic in request.topics]
        self.asked.append(names)
        await self.may_answer.wait()
        for name in names:
            if name not in self.refusals and self.quorum.metadata.topics.get(name) is None:
                self.quorum.commit(TopicRecord(name, name.encode().rjust(16)))
        return CreateTopicsResponse(
            topics=[CreatableTopicResult(name, error_code=self.refusals.get(name, ErrorCode.NONE)) for name in names]
        )


def play(
    scenario: Callable[[TopicMaker, Controller], Awaitable[None]],
    *,
    is_there: bool = True,
    create_ms_max: int = CREATE_MS_MAX,
) -> None:
    async def run() -> None:
        quorum = FakeQuorum()
        controller = Controller(quorum)
        peers = FakePeers({("one", 1): controller.answer if is_there else refuse})
        channel = ControllerChannel(1, quorum, peers, leads=lambda: False, local=controller.answer)
        async with asyncio.timeout(60):
            await scenario(TopicMaker(BrokerConfig.parse(PROPERTIES), channel, quorum, create_ms_max), controller)

    asyncio.run(run())


def test_topics_of_one_request_are_asked_for_together_and_each_once() -> None:
    async def scenario(maker: TopicMaker, controller: Controller) -> None:
        assert await maker.create(["a", "b", "a"]) == {}
        assert controller.asked == [["a", "b"]]

    play(scenario)


def test_what_is_under_way_is_not_asked_for_again() -> None:
    async def scenario(maker: TopicMaker, controller: Controller) -> None:
        controller.may_answer.clear()
        first = asyncio.create_task(maker.create(["a"]))
        await turns()
        second = asyncio.create_task(maker.create(["a", "b"]))
        await turns()
        first.cancel()
        controller.may_answer.set()
        assert await second == {}
        assert controller.asked == [["a"], ["b"]]

    play(scenario)


def test_a_refusal_is_told_of_its_topic_alone() -> None:
    async def scenario(maker: TopicMaker, controller: Controller) -> None:
        controller.refusals = {"b": ErrorCode.INVALID_REPLICATION_FACTOR, "c": ErrorCode.TOPIC_ALREADY_EXISTS}
        controller.quorum.commit(TopicRecord("c", b"c" * 16))
        refused = await maker.create(["a", "b", "c"])
        assert {name: error.code for name, error in refused.items()} == {"b": ErrorCode.INVALID_REPLICATION_FACTOR}
        assert await maker.create(["a"]) == {}, "asked again: what is over is forgotten"

    play(scenario)


def test_a_request_has_room_for_so_many() -> None:
    async def scenario(maker: TopicMaker, controller: Controller) -> None:
        await maker.create(f"t{number}" for number in range(2 * TOGETHER_MAX + 1))
        assert [len(names) for names in controller.asked] == [TOGETHER_MAX, TOGETHER_MAX, 1]

    play(scenario)


def test_creation_is_refused_without_a_controller() -> None:
    async def scenario(maker: TopicMaker, _: Controller) -> None:
        refused = await maker.create(["a", "b"])
        assert [error.code for error in refused.values()] == [ErrorCode.REQUEST_TIMED_OUT] * 2

    play(scenario, is_there=False, create_ms_max=100)


@pytest.mark.parametrize(
    ("given", "name", "configs"),
    [
        ({}, "__audit_events", {"retention.bytes": "10737418240"}),
        ({"log.retention.bytes": "-1"}, "__audit_events", {}),
        ({}, "orders", {}),
    ],
)
def test_the_audit_topic_fills_no_disk_unless_the_brokers_file_says_so(
    given: dict[str, str], name: str, configs: dict[str, str]
) -> None:
    topic = automatic_topic(BrokerConfig.parse(PROPERTIES | given), name)
    assert {config.name: config.value for config in topic.configs} == configs
    assert (topic.num_partitions, topic.replication_factor) == (-1, -1)


def extremes(of: str) -> list[dict[str, str]]:
    """The settings with the smallest values that a broker starts with, and those with the largest; one replica each."""
    counts = ("num.partitions", "segment.bytes", "min.isr")
    ranges = {name: KEYS[name].check for name in (f"{of}{count}" for count in counts) if name in KEYS}
    found = []
    for end in ("low", "high"):
        values = {name: getattr(check, end) for name, check in ranges.items() if isinstance(check, Range)}
        found.append({name: str(value) for name, value in values.items() if value is not None})
    return [{**settings, f"{of or 'default.'}replication.factor": "1"} for settings in found]


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        (name, settings)
        for name, of in (
            (OFFSETS_TOPIC, "offsets.topic."),
            (TRANSACTIONS_TOPIC, "transaction.state.log."),
            (AUDIT_TOPIC, ""),
        )
        for settings in extremes(of)
    ],
)
def test_an_internal_topic_can_be_created_with_whatever_a_broker_starts_with(
    name: str, settings: dict[str, str]
) -> None:
    config = BrokerConfig.parse(PROPERTIES | settings)
    topic = CreateTopicsRequest([automatic_topic(config, name)], 5000).topics[0]
    configs = {config.name: config.value for config in topic.configs}
    command = CreateTopic(name, uuid(9), topic.num_partitions, topic.replication_factor, configs=configs)
    (created,) = create_topics(cluster(1), [command], defaults_of(config)).response
    assert isinstance(created, Created), created
