"""Decisions that a test refuses, holds back or counts on their way to a controller."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest

from kavka_broker.controller.controller import Controller, Decide

R = TypeVar("R")


def before_decisions(
    patch: pytest.MonkeyPatch, controller: Controller, look: Callable[[Callable[..., object]], Awaitable[None]]
) -> None:
    """Await `look` before each decision; what it raises is the answer."""
    submit = controller.submit

    async def submitted(decide: Decide[R]) -> R:
        await look(decide)
        return await submit(decide)

    patch.setattr(controller, "submit", submitted)
