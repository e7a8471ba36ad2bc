"""A limit on changes that holds the operator too: what it limits waits and says so, and everything else goes on."""

import asyncio
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kavka_broker.core.quota.entity import DEFAULT, Entity
from kavka_operator.api.kinds import key_of
from kavka_operator.domain.plan import AlterQuota, CreateTopic, DeleteTopic, KafkaAction
from kavka_operator.kafka.admin import ThrottledError
from kavka_operator.kafka.client import KafkaClient
from kavka_operator.loop.converge import converge
from kavka_operator.loop.observation import Observation
from tests.support.in_process import running
from tests.unit.operator.fakes import topic

EVERYBODY = Entity(DEFAULT, None)
LIMIT = AlterQuota(EVERYBODY, {"controller_mutation_rate": 0.001})
WORDS = r"^waits until \d\d:\d\d:\d\dZ: the quota controller_mutation_rate holds the operator"


def creations(*names: str) -> list[KafkaAction]:
    return [CreateTopic(name, 6, 1, {}) for name in names]


def test_what_the_limit_counts_waits_and_the_rest_goes_on(tmp_path: Path) -> None:
    def play(address: str) -> None:
        with closing(KafkaClient(address)) as client:
            client.perform(LIMIT)
            first = [str(error) for error in client.perform_many(creations("a", "b", "c")) if error is not None]
            assert first, "the limit has not let all of them through"
            for action in (*creations("d"), DeleteTopic("a", "AAAAAAAAAAAAAAAAAAAAAA")):
                with pytest.raises(ThrottledError, match=WORDS) as refused:
                    client.perform(action)
                assert refused.value.retriable
            seen = client.look(["a", "b", "c", "d"])
            assert 0 < len(seen.topics) < 4
            assert seen.quotas[EVERYBODY] == {"controller_mutation_rate": 0.001}
            client.perform(AlterQuota(Entity("alice", None), {"producer_byte_rate": 1.0}))

    async def scenario() -> None:
        async with running(tmp_path) as inside:
            port = inside.server.advertised[0].port
            await asyncio.to_thread(play, f"127.0.0.1:{port}")

    asyncio.run(scenario())


def test_topics_that_wait_say_why_and_until_when(tmp_path: Path) -> None:
    def play(address: str) -> None:
        with closing(KafkaClient(address)) as client:
            client.perform(LIMIT)
            wanted = [topic(name, partitions=6) for name in ("a", "b", "c", "d")]
            converge(Observation(wanted, datetime.now(UTC)), client)
            outcome = converge(Observation(wanted, datetime.now(UTC)), client)
            ready = {
                each.name: next(one for one in outcome.statuses[key_of(each)].conditions if one.type == "Ready")
                for each in wanted
            }
            waiting = [one for one in ready.values() if one.reason == "Throttled"]
            assert waiting
            assert all(one.status == "False" and "controller_mutation_rate holds" in one.message for one in waiting)
            assert {one.reason for one in ready.values()} - {"Throttled"}, "some were let through"

    async def scenario() -> None:
        async with running(tmp_path) as inside:
            port = inside.server.advertised[0].port
            await asyncio.to_thread(play, f"127.0.0.1:{port}")

    asyncio.run(scenario())
