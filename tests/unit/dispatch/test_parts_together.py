"""What thousands of partitions ask of the controller at once shares the wait for the disks of a majority."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final, TypeVar

import pytest

from kavka_broker.controller.controller import Controller
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.alter_partition_request import AlterPartitionRequest, PartitionData, TopicData
from kavka_broker.protocol.messages.alter_partition_response import AlterPartitionResponse
from kavka_broker.protocol.messages.assign_replicas_to_dirs_request import (
    AssignReplicasToDirsRequest,
    DirectoryData,
)
from kavka_broker.protocol.messages.assign_replicas_to_dirs_request import PartitionData as Assigned
from kavka_broker.protocol.messages.assign_replicas_to_dirs_request import TopicData as AssignedTopic
from kavka_broker.protocol.messages.assign_replicas_to_dirs_response import AssignReplicasToDirsResponse
from tests.support.decisions import before_decisions
from tests.support.in_process import InProcess, running
from tests.unit.dispatch.test_lost_leads import is_asked_for

ALTER_VERSION, ASSIGN_VERSION = 3, 0
PARTITIONS: Final = 275
PARTS: Final = 6  # of 50 at most
ANSWER_SECONDS: Final = 60
TOPIC_ID = b"t" * 16
R = TypeVar("R")


def alter(inside: InProcess) -> Message:
    partitions = [PartitionData(index) for index in range(PARTITIONS)]
    return AlterPartitionRequest(1, inside.broker.lifecycle.broker_epoch, [TopicData(TOPIC_ID, partitions)])


def assign(inside: InProcess) -> Message:
    topics = [AssignedTopic(TOPIC_ID, [Assigned(index) for index in range(PARTITIONS)])]
    epoch = inside.broker.lifecycle.broker_epoch
    return AssignReplicasToDirsRequest(1, epoch, [DirectoryData(b"d" * 16, topics)])


def codes(answer: Message) -> list[int]:
    match answer:
        case AlterPartitionResponse():
            return [partition.error_code for topic in answer.topics for partition in topic.partitions]
        case AssignReplicasToDirsResponse():
            return [
                partition.error_code
                for where in answer.directories
                for topic in where.topics
                for partition in topic.partitions
            ]
    raise AssertionError(answer)


ASKED: Final = {
    "alter": (alter, AlterPartitionResponse, ALTER_VERSION),
    "assign": (assign, AssignReplicasToDirsResponse, ASSIGN_VERSION),
}


def together(monkeypatch: pytest.MonkeyPatch, controller: Controller) -> None:
    """Let no decision be committed before all parts are decided."""
    begun, all_begun = 0, asyncio.Event()

    async def look(decide: Callable[..., object]) -> None:
        nonlocal begun
        if not is_asked_for(decide):
            return
        begun += 1
        if begun == PARTS:
            all_begun.set()
        async with asyncio.timeout(ANSWER_SECONDS):
            await all_begun.wait()

    before_decisions(monkeypatch, controller, look)


def play(directory: Path, scenario: Callable[[InProcess], Awaitable[None]]) -> None:
    async def run() -> None:
        async with running(directory) as inside:
            await scenario(inside)

    asyncio.run(run())


@pytest.mark.parametrize("what", ASKED)
@pytest.mark.parametrize("is_own", [False, True])
def test_parts_are_decided_before_the_first_is_committed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str, is_own: bool
) -> None:
    """With a commit for each fifty partitions, a follower of thousands took seconds to be in sync again."""
    asked, response, version = ASKED[what]

    async def scenario(inside: InProcess) -> None:
        client = await inside.connect(to_controller=True)
        together(monkeypatch, inside.broker.active)
        request = asked(inside)
        if is_own:
            answer = await inside.server.node.of_controllers.ask(request)
        else:
            answer = await client.call(request, response, version)
        assert set(codes(answer)) == {ErrorCode.UNKNOWN_TOPIC_ID}
        assert len(codes(answer)) == PARTITIONS

    play(tmp_path, scenario)


def test_a_wholly_refused_part_answers_the_whole_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sender asks the next controller for all parts again, which answers that some are done already."""

    async def scenario(inside: InProcess) -> None:
        client = await inside.connect(to_controller=True)
        controller, count = inside.broker.active, 0

        async def look(decide: Callable[..., object]) -> None:
            nonlocal count
            count += is_asked_for(decide)
            if is_asked_for(decide) and count == PARTS // 2:
                raise BrokerError(ErrorCode.NOT_CONTROLLER, "the controller has lost its leadership")

        before_decisions(monkeypatch, controller, look)
        answer = await client.call(alter(inside), AlterPartitionResponse, ALTER_VERSION)
        assert answer.error_code == ErrorCode.NOT_CONTROLLER

    play(tmp_path, scenario)
