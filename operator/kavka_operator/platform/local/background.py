"""One piece of work at a time beside the main loop.

A request to a cluster that is changing its leaders may wait for seconds, and a node that dies meanwhile must not wait
with it. The thread is a daemon: on the way out nobody waits for an answer that nobody wants any more.
"""

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

Result = TypeVar("Result")


class Background(Generic[Result]):
    """Work in a thread, whose result is taken once."""

    def __init__(self, work: Callable[[], Result]) -> None:
        self._work = work
        self._result: Result | None = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    @property
    def is_done(self) -> bool:
        """Whether `result` returns at once."""
        return not self._thread.is_alive()

    def result(self) -> Result:
        """The result of the work. Raises what the work raised."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._result  # type: ignore[return-value]

    def _run(self) -> None:
        try:
            self._result = self._work()
        except BaseException as error:  # noqa: BLE001 - it is raised again where the result is fetched
            self._error = error
