"""The end of a background task, of which nobody waits for the result: its unexpected error is never lost.

task = watch(create_task(self._send(), name="directory reports"), self._crash, forget=self._sent, then=self._send_soon)
"""

from asyncio import Task
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")
Crash = Callable[[BaseException], object]


def raise_on_loop(error: BaseException) -> None:
    """Raise a task's error in a callback of the loop, whose exception handler ends the process."""
    raise error


def watch(
    task: "Task[T]",
    crash: Crash = raise_on_loop,
    *,
    forget: Callable[["Task[Any]"], object] | None = None,
    then: Callable[[], object] | None = None,
) -> "Task[T]":
    """Return the task; `crash` is called with its error, unless it is cancelled.

    `forget` is called before, however the task has ended: its owner does not wait for it any more. `then` is called
    last, unless it has failed or is cancelled: more work may have come after its last look.
    """

    def end(task: "Task[T]") -> None:
        if forget is not None:
            forget(task)
        if task.cancelled():
            return
        if (error := task.exception()) is not None:
            crash(error)
        elif then is not None:
            then()

    task.add_done_callback(end)
    return task
