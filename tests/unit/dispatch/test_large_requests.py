"""Every API is asked for ever more at once, and what it does in one turn of the loop is counted: calls, not time.

What a turn does must not grow with the request. Where it does, by more than `GROWTH_MAX` calls with each element, of
which a request may have 100,000 (`wire.ELEMENTS_MAX`), the API is named here with what bounds it instead. A new API
that does so fails the test, and so does one of the list that does not any more. How long the loop was held where a
broker runs, `kavka_loop_held_total` says.
"""

import asyncio
from pathlib import Path
from typing import Final

import pytest

from bench.large import large
from kavka_broker.dispatch import dispatcher, large_requests
from kavka_broker.dispatch.handlers import load
from kavka_broker.request.registry import Api, Role
from tests.support.in_process import InProcess, running
from tests.support.turns import CALLS_PER_TURN_MAX, GROWTH_MAX, Turns, a_piece_a_turn

pytestmark = pytest.mark.thorough

#: The elements of a request's first array; each inner array has one. Both numbers are more than one turn handles; the
#: test has all requests read and written as large ones.
FEW: Final = 600
MANY: Final = 1_000
#: The elements for APIs that are handled in slices: more than a slice holds.
SLICED: Final = {"Produce": (4_000, 6_000), "Fetch": (6_000, 8_000)}
#: Attempts, of which one that shows what is expected is enough: other work may have had a long turn meanwhile.
ATTEMPTS: Final = 3
ANSWER_SECONDS: Final = 60

#: APIs whose turns grow with the request, with the work for each element.
NOT_CUT: Final[dict[str, str]] = {
    "ListGroups": "a filter; bounded by 16 KiB of request",
    "UpdateFeatures": "a feature; bounded by 16 KiB of request",
    "DescribeClientQuotas": "a component of the filter; bounded by 16 KiB of request",
}


async def most_calls(turns: Turns, inside: InProcess, api: Api, role: Role, elements: int) -> int:
    client = await inside.connect(
        to_controller=role == "controller"
    )  # the former connection may have been closed by a refusal
    request = large(api, elements)
    client.send(request, api.versions[1])
    turns.begin()
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            await client.receive(api.response, api.versions[1])
    except (EOFError, ConnectionError):
        pass  # the whole request was refused
    return turns.most


async def grows(turns: Turns, inside: InProcess, api: Api, role: Role) -> bool:
    """Whether more elements make a longer turn."""
    small, large = SLICED.get(api.name, (FEW, MANY)) if role == "broker" else (FEW, MANY)
    few = await most_calls(turns, inside, api, role, small)
    many = await most_calls(turns, inside, api, role, large)
    assert many < CALLS_PER_TURN_MAX or api.name in NOT_CUT, f"{api.name}: {many} calls in a turn"
    return many - few > GROWTH_MAX * (large - small)


async def is_found_to_grow(turns: Turns, inside: InProcess, api: Api, role: Role) -> bool:
    await most_calls(turns, inside, api, role, 1)  # generates its codec
    is_expected = api.name in NOT_CUT
    for _ in range(ATTEMPTS):
        if await grows(turns, inside, api, role) == is_expected:
            return is_expected
    return not is_expected


def test_no_turn_grows_with_the_request_except_the_listed_apis(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (dispatcher, large_requests):
        monkeypatch.setattr(module, "AT_ONCE_BYTES_MAX", 0)
    found: dict[str, None] = {}

    async def scenario(inside: InProcess, turns: Turns) -> None:
        await inside.create("n0", 1)
        for api in load().values():
            for role in api.on:
                if await is_found_to_grow(turns, inside, api, role):
                    found[api.name] = None

    async def run() -> None:
        turns = Turns()
        async with running(tmp_path) as inside:
            a_piece_a_turn(inside.broker.slices)
            with turns.counting():
                await scenario(inside, turns)

    asyncio.run(run())
    assert found.keys() == NOT_CUT.keys()
