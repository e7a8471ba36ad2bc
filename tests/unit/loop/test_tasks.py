"""A background task's end: its error is handed on, its owner forgets it, and what came meanwhile is begun."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from kavka_broker.loop.tasks import watch


async def well() -> None:
    """End without an error."""


async def badly() -> None:
    raise AssertionError("an invariant")


async def forever() -> None:
    await asyncio.get_running_loop().create_future()


def played(work: Coroutine[Any, Any, None], *, is_cancelled: bool = False) -> list[str]:
    """What a task's owner hears of its end, in order."""
    heard = list[str]()

    async def scenario() -> None:
        task = watch(
            asyncio.get_running_loop().create_task(work),
            lambda error: heard.append(str(error)),
            forget=lambda ended: heard.append(f"forgotten {ended is task}"),
            then=lambda: heard.append("then"),
        )
        if is_cancelled:
            task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(scenario())
    return heard


def test_a_task_that_ends_well_is_forgotten_and_then_more_is_begun() -> None:
    assert played(well()) == ["forgotten True", "then"]


def test_the_error_of_a_task_is_handed_on_and_nothing_more_is_begun() -> None:
    assert played(badly()) == ["forgotten True", "an invariant"]


def test_a_cancelled_task_is_forgotten_and_no_error() -> None:
    assert played(forever(), is_cancelled=True) == ["forgotten True"]


def test_without_an_owner_that_crashes_the_loop_has_the_error() -> None:
    async def scenario() -> list[object]:
        loop, raised = asyncio.get_running_loop(), list[object]()
        loop.set_exception_handler(lambda _, context: raised.append(context.get("exception")))
        task = watch(loop.create_task(badly()))
        await asyncio.gather(task, return_exceptions=True)
        return [str(error) for error in raised]

    assert asyncio.run(scenario()) == ["an invariant"]
