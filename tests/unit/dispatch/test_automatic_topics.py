"""Topics that clients create by asking for them: each in its own name, charged to it and told of it."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from kavka_broker.api.a19_create_topics import WAITS_FROM_TOPICS
from kavka_broker.core.audit.buffer import Journal, Policy
from kavka_broker.core.audit.chain import Chain
from kavka_broker.core.audit.changes import Change
from kavka_broker.core.audit.events import Changed
from kavka_broker.core.log_once import FORGET_MS, TEXT_MAX, ToldOnce
from kavka_broker.loop.slices import at_once
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages import alter_client_quotas_request as altering
from kavka_broker.protocol.messages.alter_client_quotas_response import AlterClientQuotasResponse
from kavka_broker.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from kavka_broker.protocol.messages.find_coordinator_response import FindCoordinatorResponse
from kavka_broker.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kavka_broker.protocol.messages.metadata_response import MetadataResponse
from kavka_broker.request.request_bounds import RequestBounds
from tests.support.decisions import before_decisions
from tests.support.in_process import Client, InProcess, following, running
from tests.support.waiting import until

LIMIT = 0.01  # a second: the burst is of 0.11 partitions, so the first topic passes and uses it up
Scenario = Callable[[InProcess, InProcess], Awaitable[None]]
CONTROLLERS_NODE = pytest.mark.parametrize("asked", [0, 1], ids=["the controller's node", "another broker"])


def play(directory: Path, scenario: Scenario, **settings: str) -> None:
    """Run a scenario where node 1 is broker and controller, node 2 a broker."""

    async def run() -> None:
        dotted = {key.replace("_", "."): value for key, value in settings.items()}
        async with running(directory / "1", dotted) as first, following(directory / "2", first) as second:
            await scenario(first, second)

    asyncio.run(run())


async def limit_everybody(first: InProcess, second: InProcess) -> None:
    """Give each client id this share, nodes too."""
    op = altering.OpData("controller_mutation_rate", LIMIT, remove=False)
    entry = altering.EntryData([altering.EntityData("client-id", None)], [op])
    client = await first.connect()
    answer = await client.call(altering.AlterClientQuotasRequest([entry]), AlterClientQuotasResponse, 1)
    assert answer.entries[0].error_code == 0
    await until(lambda: second.broker.quotas.by_type["controller_mutation"].entities_total == 1)


async def named(node: InProcess, client_id: str) -> Client:
    client = await node.connect()
    client.client_id = client_id
    return client


async def ask(node: InProcess, client: Client, *names: str) -> list[int]:
    """Ask for topics, and wait until what this has begun is over."""
    request = MetadataRequest([MetadataRequestTopic(name=name) for name in names])
    answer = await client.call(request, MetadataResponse, 12)
    assert answer.throttle_time_ms == 0
    await until(lambda: not node.broker.creating)
    assert not node.broker.wanted_topics
    return [topic.error_code for topic in answer.topics]


def there(first: InProcess) -> set[str]:
    return set(first.broker.metadata.topics.names())


def told_in(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    """Take the lines that tell of topics that could not be made."""
    lines: list[Any] = [record for record in caplog.records if record.getMessage() == "topic.not_created"]
    return [line.fields for line in lines]


@CONTROLLERS_NODE
def test_each_client_is_charged_for_its_own(tmp_path: Path, asked: int, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(first: InProcess, second: InProcess) -> None:
        await limit_everybody(first, second)
        node = (first, second)[asked]
        tenant, other = await named(node, "tenant"), await named(node, "other")
        for names in (["a1"], ["a2"], ["a2", "a3"]):
            assert set(await ask(node, tenant, *names)) == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        assert there(first) == {"a1"}
        await ask(node, other, "b1")
        assert there(first) == {"a1", "b1"}
        used = at_once(first.broker.quotas.by_type["controller_mutation"].usages(0))
        counted = {line.client_id: line.used_total for line in used}
        assert (counted["tenant"], counted["other"]) == (1, 1)
        assert not node.broker.refused["change"]

    with caplog.at_level("WARNING", "kavka"):
        play(tmp_path, scenario)
    told = told_in(caplog)
    assert [(fields["topic"], fields["client_id"]) for fields in told] == [("a2", "tenant"), ("a3", "tenant")]
    assert {fields["error"] for fields in told} == {"THROTTLING_QUOTA_EXCEEDED"}


@CONTROLLERS_NODE
def test_groups_get_their_coordinator_whatever_clients_have_used_up(tmp_path: Path, asked: int) -> None:
    async def scenario(first: InProcess, second: InProcess) -> None:
        await limit_everybody(first, second)
        node = (first, second)[asked]
        await ask(node, await named(node, "tenant"), "a1")
        # What a node asks for in its own name counts for nobody: the second topic neither.
        assert await node.broker.topics.create(["__audit_events"]) == {}
        client = await node.connect()
        found = await client.call(FindCoordinatorRequest("g"), FindCoordinatorResponse, 3)
        assert (found.error_code, there(first)) == (0, {"a1", "__audit_events", "__consumer_offsets"})

    play(tmp_path, scenario)


@CONTROLLERS_NODE
def test_the_trail_tells_who_has_made_a_topic(tmp_path: Path, asked: int) -> None:
    async def scenario(first: InProcess, second: InProcess) -> None:
        node = (first, second)[asked]
        journal = node.broker.journal = Journal(Chain("1-1"), 0)
        await ask(node, await named(node, "etl"), "made")
        (tally,) = journal.window.take(1)
        assert tally.happening == Changed("User:ANONYMOUS", "127.0.0.1", "etl", Change("CREATE", "topic", "made"))
        assert journal.held == 0, "the room that was promised is given back"

    play(tmp_path, scenario)


def test_nothing_is_made_that_a_full_trail_could_not_tell(tmp_path: Path) -> None:
    async def scenario(first: InProcess, second: InProcess) -> None:
        journal = first.broker.journal = Journal(Chain("1-1"), 0, policy=Policy.REJECT)
        first.broker.is_refusing = True
        while journal.admit(1_000):
            pass
        await ask(first, await first.connect(), "made")
        assert (there(first), first.broker.refused["change"]) == (set(), 1)

    play(tmp_path, scenario)


def test_a_brokers_own_counts_go_before_the_controllers(tmp_path: Path) -> None:
    async def scenario(first: InProcess, second: InProcess) -> None:
        second.broker.config = second.broker.config.parse({**second.broker.config.given, "num.partitions": "5"})
        await ask(first, await first.connect(), "controllers")
        await ask(second, await second.connect(), "brokers")
        topics = first.broker.metadata.topics
        counts = {name: len(topics.get(name).partitions) for name in there(first)}  # type: ignore[union-attr]
        assert counts == {"controllers": 2, "brokers": 5}

    play(tmp_path, scenario, num_partitions="2")


def test_topics_of_one_connection_are_queued_and_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(first: InProcess, second: InProcess) -> None:
        first.broker.bounds = RequestBounds(queued_topics_max=3, created_together_max=2)
        controller, may_go = first.broker.active, asyncio.Event()

        async def slowly(_: object) -> None:
            await may_go.wait()

        before_decisions(monkeypatch, controller, slowly)
        client = await named(first, "one")
        for names in (["a", "b"], ["c", "d"], ["e"]):
            await client.call(
                MetadataRequest([MetadataRequestTopic(name=name) for name in names]), MetadataResponse, 12
            )
        client.client_id = "two"
        await client.call(MetadataRequest([MetadataRequestTopic(name="f")]), MetadataResponse, 12)
        ((_, queue),) = first.broker.wanted_topics.values()
        assert [*queue] == ["a", "b", "c"]
        client.close()
        may_go.set()
        await until(lambda: not first.broker.creating)
        assert there(first) == {"a", "b", "c"}, "also where the client has gone"
        await ask(first, await first.connect(), "d")
        assert there(first) == {"a", "b", "c", "d"}

    play(tmp_path, scenario)


def test_no_controller_makes_no_topic_and_the_log_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(first: InProcess, second: InProcess) -> None:
        async def refuse(*_: object) -> None:
            raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, "no room")

        before_decisions(monkeypatch, first.broker.active, refuse)
        for _ in range(2):
            await ask(second, await second.connect(), "t")

    with caplog.at_level("WARNING", "kavka"):
        play(tmp_path, scenario)
    told = told_in(caplog)
    assert [(fields["topic"], fields["error"]) for fields in told] == [("t", "KAFKA_STORAGE_ERROR")]


def test_the_log_tells_so_many_names_in_an_hour_and_none_in_full_length() -> None:
    told = ToldOnce(2)
    assert told.is_new(0, "event", "n" * (TEXT_MAX + 1))
    assert not told.is_new(0, "event", "n" * (TEXT_MAX + 2))
    assert told.is_new(0, "event", "b")
    assert not told.is_new(1, "event", "c"), "full"
    assert told.is_new(1, "another", "c")
    assert told.is_new(FORGET_MS, "event", "b")


def test_topics_that_are_made_for_an_answer_take_no_place_among_long_answers(tmp_path: Path) -> None:
    """Eight such requests kept every list waiting for good."""

    async def scenario(first: InProcess, second: InProcess) -> None:
        client = await named(first, "c")
        await ask(first, client, *(f"t{number}" for number in range(WAITS_FROM_TOPICS)))
        await until(lambda: len(list(first.broker.metadata.topics)) >= WAITS_FROM_TOPICS)
        await until(lambda: not first.broker.answers.making_count)

    play(tmp_path, scenario)
