"""Whoever holds the loop is counted and named: while a callback runs, nobody else is served.

Each callback of the loop is timed, which takes a fifth of a microsecond on asyncio's loop and twice that on uvloop's.
One that ran for longer than `HELD_SECONDS` counts under its name, and is told in the log, once in a while. The name is
that of the function; of a connection also the API that it has served last, of the timers the one that fired last.

asyncio has this in its debug mode only, which costs several times as much as the broker itself. So `watch` puts itself
around `Handle._run`, through which every callback of asyncio's loop goes; a Python without that has no watchdog, and
nothing else changes.

A loop of uvloop runs its callbacks in C. There `watch` puts itself around the methods of the loop that take a callback,
and around those by which the loop calls the protocols of its connections. The loop looks these up when it makes a
connection: only connections that are made later are watched.
"""

import asyncio
from asyncio import events
from collections.abc import Callable
from functools import partial, wraps
from time import perf_counter
from typing import Any, Final

from kavka_broker.logs import get
from kavka_broker.runtime.log_rate_limit import Quiet

log = get("runtime")

HELD_SECONDS: Final = 0.010
WARNING_INTERVAL_S: Final = 10.0
NAMES_MAX: Final = 50
OTHER: Final = "__other__"

#: Methods of a loop that take a callback: as their first argument, or behind another one.
TAKE_CALLBACK: Final = ("call_soon", "call_soon_threadsafe")
TAKE_CALLBACK_SECOND: Final = ("call_later", "add_reader", "add_writer")  # uvloop's `call_at` calls `call_later`
#: Methods of a loop whose first argument makes the protocol of a connection.
TAKE_FACTORY: Final = ("connect_accepted_socket", "create_connection", "create_server")
#: Methods of a protocol that the loop calls, and that do more than to name a buffer.
OF_PROTOCOLS: Final = (
    "connection_made",
    "data_received",
    "buffer_updated",
    "eof_received",
    "resume_writing",
    "connection_lost",
)


class Watchdog:
    """Counts how often, and for how long in all, callbacks have held the loop, by their names."""

    def __init__(self, clock: Callable[[], float] = perf_counter) -> None:
        self._clock = clock
        self._quiet = Quiet(WARNING_INTERVAL_S)
        self._restores: list[Callable[[], None]] = []  # what takes the watchdog away again
        self._protocols: dict[type, None] = {}
        self._counted_at = 0.0  # by the clock, when the last callback that was counted had ended
        self.held: dict[str, tuple[int, float]] = {}

    def watch(self, loop: asyncio.AbstractEventLoop) -> None:
        """Time every callback of this loop from now on. Of asyncio's, those of all loops of the process."""
        if isinstance(loop, asyncio.BaseEventLoop):
            self._watch_handles()
        else:
            self._watch_methods(loop)

    def unwatch(self) -> None:
        while self._restores:
            self._restores.pop()()
        self._protocols.clear()

    def _watch_handles(self) -> None:
        run = getattr(events.Handle, "_run", None)
        if run is None:
            log.warning("loop.unwatched", reason="this Python's asyncio has no Handle._run")
            return
        clock, count = self._clock, self.count

        def timed(handle: Any) -> None:
            began = clock()
            run(handle)
            seconds = clock() - began
            if seconds > HELD_SECONDS:
                count(handle._callback, seconds)
            del handle  # as below

        self._replace(events.Handle, "_run", timed)

    def _watch_methods(self, loop: asyncio.AbstractEventLoop) -> None:
        call = self._timed_call()
        for name in TAKE_CALLBACK:
            self._replace(loop, name, partial(getattr(loop, name), call))
        for name in TAKE_CALLBACK_SECOND:
            self._replace(loop, name, _with_second(getattr(loop, name), call))
        for name in TAKE_FACTORY:
            self._replace(loop, name, self._with_factory(getattr(loop, name)))

    def _timed_call(self) -> Callable[..., None]:
        clock, end = self._clock, self._end

        def call(callback: Callable[..., object], *arguments: object) -> None:
            began = clock()
            try:
                callback(*arguments)
            finally:
                ended = clock()
                if ended - began > HELD_SECONDS:
                    end(name_of(callback), began, ended)
                # The traceback of an error below leads here too: a task would hold its error, and that the task.
                del callback, arguments

        return call

    def _with_factory(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def connect(factory: Callable[[], asyncio.BaseProtocol], *arguments: Any, **options: Any) -> Any:
            def make() -> asyncio.BaseProtocol:
                protocol = factory()
                self._watch_protocol(type(protocol))
                return protocol

            return method(make, *arguments, **options)

        return connect

    def _watch_protocol(self, kind: type) -> None:
        """Time what the loop calls of the protocols of this class. A connection has no part in it, which would hold
        the connection once that has ended.
        """
        if kind in self._protocols:
            return
        self._protocols[kind] = None
        for name in OF_PROTOCOLS:
            if hasattr(kind, name):
                self._replace(kind, name, self._timed_method(getattr(kind, name)))

    def _timed_method(self, method: Callable[..., Any]) -> Callable[..., Any]:
        clock, end = self._clock, self._end

        @wraps(method)
        def call(protocol: Any, *arguments: object) -> Any:
            began = clock()
            try:
                return method(protocol, *arguments)
            finally:
                ended = clock()
                if ended - began > HELD_SECONDS:
                    end(name_of_protocol(protocol), began, ended)
                del protocol, arguments  # as above

        return call

    def _end(self, name: str, began: float, ended: float) -> None:
        """Count a callback that has held the loop, unless one that it has called was: that one says more."""
        if began >= self._counted_at:
            self._counted_at = ended
            self._count(name, ended - began)

    def _replace(self, owner: Any, name: str, value: Any) -> None:
        """Set an attribute until `unwatch`."""
        before = vars(owner).get(name)
        setattr(owner, name, value)
        self._restores.append(
            partial(setattr, owner, name, before) if before is not None else partial(delattr, owner, name)
        )

    def count(self, callback: Any, seconds: float) -> None:
        """Note that the callback has held the loop for so long."""
        self._count(name_of(callback), seconds)

    def _count(self, name: str, seconds: float) -> None:
        key = name if name in self.held or len(self.held) < NAMES_MAX else OTHER
        count, total = self.held.get(key, (0, 0.0))
        self.held[key] = (count + 1, total + seconds)
        hushed = self._quiet.hushed()
        if hushed is not None:
            log.warning("loop.held", callback=name, for_ms=round(seconds * 1000), repeated=hushed)


def _with_second(method: Callable[..., Any], call: Callable[..., None]) -> Callable[..., Any]:
    def schedule(first: Any, callback: Callable[..., object], *arguments: object, **options: Any) -> Any:
        return method(first, call, callback, *arguments, **options)

    return schedule


def name_of_protocol(protocol: Any) -> str:
    """Return the class of a connection, and what it has served last."""
    return " ".join(filter(None, (type(protocol).__qualname__, getattr(protocol, "doing", ""))))


def name_of(callback: Any) -> str:
    """Return the callback's name for a reader of the log."""
    while isinstance(callback, partial):
        callback = callback.func
    owner = getattr(callback, "__self__", None)
    if isinstance(owner, asyncio.Task):
        return getattr(owner.get_coro(), "__qualname__", "task")
    doing = getattr(owner, "doing", None)
    if doing is None and isinstance(owner, asyncio.BaseTransport):
        owner = owner.get_protocol() if hasattr(owner, "get_protocol") else owner
        return name_of_protocol(owner)
    return " ".join(filter(None, (getattr(callback, "__qualname__", type(callback).__qualname__), doing)))
