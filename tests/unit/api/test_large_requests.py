"""Every API is asked for much at once, and what it does in one turn of the loop is counted: calls, not time.

An API whose work grows by more than `CALLS_PER_ELEMENT_MAX` calls with each element of a request, and does not let
others have their turn, is named here. A new API that does so fails the test, and so does one of the list that does not
any more. How long the loop was held where a broker runs, `kavka_loop_held_total` says.
"""

import asyncio
import sys
from asyncio import events
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Final

from kavka_broker.api.registry import Api, load
from kavka_broker.protocol.compiler.layout import Layout, Place, of_message
from kavka_broker.protocol.message import Message
from tests.support.in_process import Client, InProcess, running

#: So many elements has the first array of the request, and each of those within has one.
ELEMENTS: Final = 500
#: Calls of functions: a tenth of a microsecond and more each.
CALLS_PER_ELEMENT_MAX: Final = 39
ANSWER_SECONDS: Final = 20

#: Not cut into turns, with what is done for each element. Their requests are bounded by `socket.request.max.bytes`,
#: those of CreateTopics by its number of partitions as well.
NOT_CUT: Final[dict[str, str]] = {
    "WriteTxnMarkers": "a task for each transaction",
    "CreateTopics": "configs are checked, replicas placed, records made; all is one decision",
    "AlterConfigs": "configs are checked; all is one decision",
    "AlterClientQuotas": "entities are checked; all is one decision",
    "AlterPartitionReassignments": "partitions are checked; all is one decision",
    "DescribeQuorum": "an answer for each partition, though only one is known",
    "DescribeGroups": "a look at each group",
    "Fetch": "a partition of a session is made, and read",
}


class Turns:
    """Counts the calls in each callback of the loop."""

    def __init__(self) -> None:
        self._calls = 0
        self.most = 0

    def begin(self) -> None:
        self.most = 0

    def _called(self, frame: FrameType, event: str, argument: object) -> None:
        self._calls += event in ("call", "c_call")

    @contextmanager
    def counting(self) -> Iterator[None]:
        run, of_the_test = events.Handle._run, asyncio.current_task()

        def counted(handle: Any) -> None:
            if getattr(handle._callback, "__self__", None) is of_the_test:
                run(handle)
                return
            self._calls = 0
            sys.setprofile(self._called)
            try:
                run(handle)
            finally:
                sys.setprofile(None)
                self.most = max(self.most, self._calls)

        events.Handle._run = counted  # type: ignore[method-assign, assignment]
        try:
            yield
        finally:
            events.Handle._run = run  # type: ignore[method-assign]


def large(api: Api) -> Message:
    """A request of the newest version with many elements, each with a name of its own."""
    message = filled(of_message(api.request, api.versions[1]), ELEMENTS, 0)
    assert isinstance(message, Message)
    return message


def filled(layout: Layout, count: int, number: int) -> Any:
    return layout.kind(**{place.attribute: value_of(layout, place, count, number) for place in layout.places})


def value_of(layout: Layout, place: Place, count: int, number: int) -> Any:
    if place.is_array:
        return [value_of(layout, place.element, 1, index + number) for index in range(count)]
    if place.is_struct:
        return filled(layout.nested(place.type), count, number)
    match place.type:
        case "string":
            return f"n{number}"
        case "uuid":
            return number.to_bytes(16, "big")
        case "bytes" | "records":
            return b""
        case "bool":
            return False
        case "float64":
            return 1.0
    return number if place.attribute in {"partition_index", "index", "partition"} else 0


async def most_calls(turns: Turns, client: Client, api: Api) -> int:
    request = large(api)
    client.send(request, api.versions[1])
    turns.begin()
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            await client.receive(api.response, api.versions[1])
    except (EOFError, ConnectionError):
        pass  # it has refused the request as a whole
    return turns.most


def test_no_api_does_much_in_one_turn_but_those_that_are_named(tmp_path: Path) -> None:
    found: dict[str, int] = {}

    async def scenario(inside: InProcess, turns: Turns) -> None:
        await inside.create("n0", 1)
        for api in load().values():
            for role in api.on:
                client = await inside.connect(to_controller=role == "controller")
                calls = await most_calls(turns, client, api)
                found[api.name] = max(calls, found.get(api.name, 0))

    async def run() -> None:
        turns = Turns()
        async with running(tmp_path) as inside:
            with turns.counting():
                await scenario(inside, turns)

    asyncio.run(run())
    long = {api for api, calls in found.items() if calls > CALLS_PER_ELEMENT_MAX * ELEMENTS}
    assert long == NOT_CUT.keys(), found
