"""The broker's own chores go on, whatever becomes of one of them."""

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from kavka_broker.protocol.errors import BrokerError, ErrorCode, InvariantViolation
from kavka_broker.runtime.housekeeping import Chore, Housekeeping


def keeper(crash: Callable[[BaseException], None]) -> Housekeeping:
    nothing: Any = SimpleNamespace()
    return Housekeeping(nothing, nothing, nothing, nothing, nothing, crash, nothing)


def run_chore(error: Exception, times: int) -> tuple[int, list[BaseException]]:
    """How often a chore that fails is done, of `times`, and what crashed."""
    crashes: list[BaseException] = []
    done = 0

    async def scenario() -> None:
        nonlocal done
        enough = asyncio.Event()

        async def work() -> None:
            nonlocal done
            done += 1
            if done == times:
                enough.set()
            raise error

        def crash(problem: BaseException) -> None:
            crashes.append(problem)
            enough.set()

        keeping = keeper(crash)
        task = asyncio.create_task(keeping.repeat(Chore("test", 1, work)))
        async with asyncio.timeout(5):
            await enough.wait()
        task.cancel()

    asyncio.run(scenario())
    return done, crashes


@pytest.mark.parametrize(
    "error", [OSError(28, "full"), BrokerError(ErrorCode.KAFKA_STORAGE_ERROR), ValueError("of ours"), KeyError("too")]
)
def test_a_chore_that_fails_is_done_again(error: Exception) -> None:
    assert run_chore(error, 3) == (3, [])


def test_a_broken_invariant_is_not_carried_on_with() -> None:
    error = InvariantViolation("broken")
    assert run_chore(error, 3) == (1, [error])
