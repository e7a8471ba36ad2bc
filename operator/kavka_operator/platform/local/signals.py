"""SIGINT and SIGTERM as an exception in the main thread, except where something must not be torn apart.

The first signal raises `Stopped` where the main thread stands, also inside a blocking call; within `held()` it waits
for the end of the block. During the stop itself a second signal raises again, which ends what does not want to end.
"""

import signal
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType
from typing import Self


class Stopped(BaseException):
    """A signal asked this program to end. Not an Exception, so that no handler for errors swallows it."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


class Signals:
    """Handlers for as long as the `with` block lasts."""

    def __init__(self) -> None:
        self._held = 0
        self._pending: int | None = None

    def __enter__(self) -> Self:
        self._before = {number: signal.signal(number, self._arrived) for number in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    @contextmanager
    def held(self) -> Generator[None]:
        """Hold signals back until the block is done. Raises Stopped at its end if one came."""
        self._held += 1
        try:
            yield
        finally:
            self._held -= 1
        if not self._held and self._pending is not None:
            number, self._pending = self._pending, None
            raise Stopped(number)

    def _arrived(self, number: int, _frame: FrameType | None) -> None:
        if self._held:
            self._pending = number
        else:
            raise Stopped(number)
