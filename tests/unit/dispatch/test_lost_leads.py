"""A controller that loses the lead in the middle of a request that is decided in parts."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final, TypeVar

import pytest

from kavka_broker.controller.controller import Controller
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kavka_broker.protocol.messages.create_topics_response import CreateTopicsResponse
from kavka_broker.protocol.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kavka_broker.protocol.messages.delete_topics_response import DeleteTopicsResponse
from kavka_broker.request.request_bounds import RequestBounds
from tests.support.decisions import before_decisions
from tests.support.in_process import Client, InProcess, following, running

CREATE, DELETE = 7, 6
R = TypeVar("R")
Scenario = Callable[[InProcess, InProcess], Awaitable[None]]


def play(directory: Path, scenario: Scenario) -> None:
    """Run a scenario where node 1 is broker and controller, node 2 a broker."""

    async def run() -> None:
        async with running(directory / "1") as first, following(directory / "2", first) as second:
            await scenario(first, second)

    asyncio.run(run())


MANY: Final = 120
NAMES: Final = [f"topic-{number}" for number in range(MANY)]


def losing_the_lead(monkeypatch: pytest.MonkeyPatch, controller: Controller, *, for_good: bool, at: int = 2) -> None:
    """Refuse the decision of a request `at` this place; then the lead is back, unless it is lost `for_good`. Heartbeats
    are decided too, whenever they come, and do not count.
    """
    count = 0

    async def look(decide: Callable[..., object]) -> None:
        nonlocal count
        count += is_asked_for(decide)
        if is_asked_for(decide) and (count == at or (count > at and for_good)):
            raise BrokerError(ErrorCode.NOT_CONTROLLER, "the controller has lost its leadership")

    before_decisions(monkeypatch, controller, look)


def is_asked_for(decide: Callable[..., object]) -> bool:
    return not decide.__module__.startswith("kavka_broker.controller.")


async def created(client: Client) -> list[ErrorCode]:
    request = CreateTopicsRequest([CreatableTopic(name, 1, 1) for name in NAMES])
    answer = await client.call(request, CreateTopicsResponse, CREATE)
    assert [topic.name for topic in answer.topics] == NAMES
    return [ErrorCode(topic.error_code) for topic in answer.topics]


async def deleted(client: Client) -> list[ErrorCode]:
    request = DeleteTopicsRequest([DeleteTopicState(name) for name in NAMES])
    answer = await client.call(request, DeleteTopicsResponse, DELETE)
    assert [topic.name for topic in answer.responses] == NAMES
    return [ErrorCode(topic.error_code) for topic in answer.responses]


@pytest.mark.parametrize("is_passed_on", [False, True])
@pytest.mark.parametrize("at", [1, 2])
def test_a_lead_lost_between_two_parts_is_hidden_from_the_client(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int, is_passed_on: bool
) -> None:
    """A client that asked the next controller for all topics would hear that those just created exist."""

    async def scenario(first: InProcess, second: InProcess) -> None:
        client = await (second if is_passed_on else first).connect()
        for ask in (created, deleted):
            with monkeypatch.context() as patch:
                losing_the_lead(patch, first.broker.active, for_good=False, at=at)
                assert set(await ask(client)) == {ErrorCode.NONE}

    play(tmp_path, scenario)


def test_a_lead_lost_before_the_first_part_is_decided_is_the_answer_to_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever hears that of some alone asks for all of them again."""

    async def scenario(first: InProcess, _: InProcess) -> None:
        client = await first.connect(to_controller=True)
        losing_the_lead(monkeypatch, first.broker.active, for_good=False, at=1)
        assert Counter(await created(client)) == {ErrorCode.NOT_CONTROLLER: MANY}
        assert set(await created(client)) == {ErrorCode.NONE}
        losing_the_lead(monkeypatch, first.broker.active, for_good=False, at=1)
        assert set(await deleted(client)) == {ErrorCode.NONE}  # won again before the second part: all is decided

    play(tmp_path, scenario)


@pytest.mark.parametrize("to_controller", [False, True])
def test_without_a_new_leader_only_the_rest_gets_the_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, to_controller: bool
) -> None:
    async def scenario(first: InProcess, second: InProcess) -> None:
        first.broker.bounds = RequestBounds(forward_ms_max=100)
        client = await first.connect(to_controller=to_controller)
        with monkeypatch.context() as patch:
            losing_the_lead(patch, first.broker.active, for_good=True)
            assert Counter(await created(client)) == {ErrorCode.NONE: 50, ErrorCode.NOT_CONTROLLER: MANY - 50}
        await created(client)
        with monkeypatch.context() as patch:
            losing_the_lead(patch, first.broker.active, for_good=True)
            codes = Counter(await deleted(client))
        assert codes.keys() == {ErrorCode.NONE, ErrorCode.NOT_CONTROLLER}

    play(tmp_path, scenario)
