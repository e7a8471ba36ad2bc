"""Requests of streams groups with anything in them: each is answered, or its connection closed, and no more happens.

Most heartbeats are those of a few members with topologies that are nearly right: otherwise hardly one would join.
`python -m tests.unit.api.test_streams_fuzz 100000` plays so many of them.
"""

import asyncio
import logging
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest

from kavka_broker.core.metadata.decide.features import UpdateFeature, update_features
from kavka_broker.protocol.codec import encode
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.framing import RequestHeader, encode_request_header
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages import streams_group_heartbeat_request as sent
from kavka_broker.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from kavka_broker.protocol.messages.find_coordinator_response import FindCoordinatorResponse
from kavka_broker.protocol.messages.streams_group_describe_request import StreamsGroupDescribeRequest
from kavka_broker.protocol.messages.streams_group_describe_response import (
    DescribedGroup,
    StreamsGroupDescribeResponse,
)
from kavka_broker.protocol.messages.streams_group_heartbeat_request import StreamsGroupHeartbeatRequest
from kavka_broker.protocol.messages.streams_group_heartbeat_response import StreamsGroupHeartbeatResponse
from kavka_broker.request.registry import APIS
from tests.property.protocol.building import build
from tests.support.drawn import commit
from tests.support.in_process import InProcess, running
from tests.unit.api.test_share_fuzz import Asker, Likely
from tests.unit.api.test_streams_groups import LOADING
from tests.unit.streams_group.world import topology

HEARTBEAT, DESCRIBE = 88, 89
INPUTS: Final = 600  # of which some are those of every commit: one group at least comes to tasks by them
OF_EVERY_COMMIT: Final = 200
ANSWERED_SHARE_MIN: Final = 0.5
LIKELY_SHARE: Final = 0.8
SPOILT_SHARE: Final = 0.1
GROUPS, MEMBERS, TOPICS = "gh", "mno", ("t", "u", "r", "c", "missing")
SETTINGS: Final = {
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.streams.assignment.interval.ms": "0",
    "group.streams.num.standby.replicas": "1",
}
Epochs = dict[tuple[str, str], int]


def request_of(number: int, topic_id: bytes, epochs: Epochs) -> tuple[Message, Random]:
    """The request of this number; members are often in the epoch that they were told."""
    chance = Random(f"streams request {number}")
    key = HEARTBEAT if chance.random() < 0.9 else DESCRIBE
    message: Message = build(APIS[key].request, 0, Likely(number, topic_id))
    if isinstance(message, StreamsGroupDescribeRequest) and chance.random() < LIKELY_SHARE:
        message.group_ids = list(GROUPS)
    if isinstance(message, StreamsGroupHeartbeatRequest) and chance.random() < LIKELY_SHARE:
        make_likely(message, chance, epochs)
    return message, chance


def make_likely(message: StreamsGroupHeartbeatRequest, chance: Random, epochs: Epochs) -> None:
    """Make a heartbeat one that a member might send, wrong in few places."""
    message.group_id, message.member_id = chance.choice(GROUPS), chance.choice(MEMBERS)
    known = epochs.get((message.group_id, message.member_id), 0)
    message.member_epoch = chance.choice((0, known, known, known, known - 1, -1, 7))
    message.instance_id = message.warmup_tasks = message.task_offsets = message.task_end_offsets = None
    message.rebalance_timeout_ms, message.process_id = chance.choice((-1, 1_000, 1_000)), chance.choice("pq")
    message.topology = None
    message.shutdown_application = chance.random() < 0.02
    if message.member_epoch == 0:
        message.topology, message.rebalance_timeout_ms = nearly_right(chance), 1_000
        message.active_tasks, message.standby_tasks, message.warmup_tasks = [], [], []
    elif chance.random() < 0.5:
        message.active_tasks, message.standby_tasks = tasks(chance), tasks(chance)
        message.warmup_tasks = []
    else:
        message.active_tasks = message.standby_tasks = None


def tasks(chance: Random) -> list[sent.TaskIds]:
    return [sent.TaskIds(part, chance.sample((0, 1, 2, -1), chance.randint(0, 3))) for part in chance.sample("012", 2)]


def nearly_right(chance: Random) -> sent.Topology:
    """The topology of the tests, often with a field of it changed."""
    made = topology(chance.choice((0, 0, 0, 1)))
    part = chance.choice(made.subtopologies)
    change = chance.randint(0, 12)
    if change == 0:
        part.source_topics = chance.sample(TOPICS, chance.randint(0, 3))
    elif change == 1:
        part.repartition_sink_topics = chance.sample(TOPICS, chance.randint(0, 3))
    elif change == 2:
        part.subtopology_id = chance.choice("01")
    elif change == 3:
        part.copartition_groups = [sent.CopartitionGroup([chance.randint(-1, 2)], [], [chance.randint(-1, 2)])]
    elif change == 4:
        topic = sent.TopicInfo(chance.choice(TOPICS), chance.choice((-1, 0, 1, 3)), chance.choice((-1, 0, 1, 9)))
        topic.topic_configs = [sent.KeyValue(chance.choice(("cleanup.policy", "x")), chance.choice(("compact", "")))]
        part.repartition_source_topics = [*part.repartition_source_topics, topic]
    elif change == 5:
        part.state_changelog_topics = [sent.TopicInfo(name) for name in chance.sample(TOPICS, 2)]
    elif change == 6:
        made.subtopologies = made.subtopologies[:1] * chance.randint(0, 2)
    return made


def spoilt(message: Message, chance: Random) -> bytes:
    """The bytes of a request, some of them changed now and then."""
    encoded = bytearray(encode(message, 0))
    if chance.random() < SPOILT_SHARE:
        for _ in range(chance.randint(1, 3)):
            encoded[chance.randrange(len(encoded))] = chance.randrange(256)
    assert message.API_KEY is not None
    return encode_request_header(RequestHeader(message.API_KEY, 0, 7, "fuzz")) + bytes(encoded)


async def describe(inside: InProcess) -> list[DescribedGroup]:
    """What is told of the groups once their coordinator has read its log."""
    client = await inside.connect()
    while True:
        answer = await client.call(StreamsGroupDescribeRequest(list(GROUPS)), StreamsGroupDescribeResponse, 0)
        if not any(group.error_code in LOADING for group in answer.groups):
            return answer.groups
        await inside.heard()


def kept(group: DescribedGroup) -> tuple[Any, ...]:
    """What the log keeps of a group."""
    members = sorted((member.member_id, member.member_epoch, member.process_id) for member in group.members)
    return group.error_code, group.group_epoch, members


async def play(directory: Path, numbers: Iterable[int]) -> Counter[str]:
    epochs: Epochs = {}
    async with running(directory, SETTINGS) as inside:
        raised = [UpdateFeature("streams.version", 1)]
        await inside.broker.active.submit(lambda metadata, _: update_features(metadata, raised))
        topic_id = await inside.create("t", 2)
        await inside.create("u", 3)
        finder = await inside.connect()
        finding = FindCoordinatorRequest(key_type=0, coordinator_keys=list(GROUPS))
        await finder.call(finding, FindCoordinatorResponse, 6)  # which makes the topic of groups
        asker = Asker(inside)
        for number in numbers:
            message, chance = request_of(number, topic_id, epochs)
            assert message.API_KEY is not None
            answer = await asker.ask(message.API_KEY, 0, spoilt(message, chance))
            if isinstance(answer, StreamsGroupHeartbeatResponse) and isinstance(message, StreamsGroupHeartbeatRequest):
                asker.counts[ErrorCode(answer.error_code).name] += 1
                if not answer.error_code:
                    epochs[message.group_id, answer.member_id] = max(answer.member_epoch, 0)
                    asker.counts["with tasks"] += bool(answer.active_tasks)
        before = await describe(inside)
    async with running(directory, SETTINGS) as inside:
        assert list(map(kept, await describe(inside))) == list(map(kept, before)), "the log gives the same groups"
    return asker.counts


def test_any_request_is_answered_or_its_connection_closed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    first = int(commit()[:6], 16) * INPUTS
    counts = asyncio.run(play(tmp_path, [*range(OF_EVERY_COMMIT), *range(first, first + INPUTS - OF_EVERY_COMMIT)]))
    assert counts["answered"] > ANSWERED_SHARE_MIN * INPUTS
    assert min(counts["NONE"], counts["with tasks"], counts["INVALID_REQUEST"]) > 0, counts
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR or record.exc_info]


if __name__ == "__main__":
    logging.basicConfig(level=logging.ERROR)
    with tempfile.TemporaryDirectory() as scratch:
        print(asyncio.run(play(Path(scratch), range(int(sys.argv[1])))).most_common())
