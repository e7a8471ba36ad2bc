"""Time on the loop that a handler's coroutine takes: the sum of its steps, without what it waits for."""

from collections.abc import Callable, Coroutine, Generator
from types import TracebackType
from typing import Any, TypeVar

from kavka_broker.loop.slices import LoopTime, Payer

T = TypeVar("T")


def paid(coroutine: Coroutine[Any, Any, T], time: LoopTime) -> Coroutine[Any, Any, T]:
    """Return the coroutine for a task of its own; the present request pays for its steps."""
    return coroutine if time.payer is None else Steps(coroutine, time.payer, time)


class Steps(Coroutine[Any, Any, T]):
    """A coroutine whose steps `payer` pays for."""

    def __init__(self, coroutine: Coroutine[Any, Any, T], payer: Payer, time: LoopTime) -> None:
        self.__qualname__ = getattr(coroutine, "__qualname__", "request")  # for the watchdog
        self._coroutine = coroutine
        self._payer = payer
        self._time = time

    def send(self, value: Any) -> Any:
        return self._step(self._coroutine.send, value)

    def throw(self, kind: Any, value: BaseException | object = None, traceback: TracebackType | None = None) -> Any:
        error = kind if value is None else value
        try:
            return self._step(self._coroutine.throw, error)
        finally:
            del kind, value, error  # a traceback holds this frame: the error would hold itself, and all it has passed

    def close(self) -> None:
        self._coroutine.close()

    def __await__(self) -> Generator[Any, Any, T]:
        return self._coroutine.__await__()

    def _step(self, step: Callable[[Any], Any], argument: Any) -> Any:
        time, payer = self._time, self._payer
        time.payer, began_ns = payer, time.now_ns()
        try:
            return step(argument)
        finally:
            time.payer = None
            took_ns = time.now_ns() - began_ns
            payer.loop_ns += took_ns
            if payer.flow is not None:
                time.turns.charge(payer.flow, took_ns)
            del argument  # as above
