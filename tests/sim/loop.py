"""An asyncio loop whose time is virtual, whose chance has a seed, and whose callbacks know their process.

A simulated process is a mark in the context of everything that it schedules: tasks, timers and callbacks inherit it.
So a process that is paused is one whose callbacks wait, and a process that is killed is one whose callbacks never run:
not one `finally` of it, as with kill -9.

Within a process callbacks run in the order in which they became ready, as asyncio promises. What a real loop cannot
know, the moments at which packets arrive and threads finish, is drawn from the seed, and time jumps to the next of
them. Work for threads runs whole, at a drawn moment between being asked for and being answered.

Sets of tasks and futures would be ordered by their addresses; here both hash by the order of their making. Whatever
would reach the real world raises `Escaped`; a loop that has nothing to wait for raises `Deadlock`.
"""

import asyncio
import contextvars
import gc
import random
import warnings
from collections import deque
from collections.abc import Callable, Coroutine, Generator, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from hashlib import blake2b
from heapq import heappop, heappush
from typing import Any, NoReturn

STEPS_MAX = 20_000_000
STEPS_AT_ONCE_MAX = 100_000  # without time going on
TASKS_KEPT_MAX = 10_000
# Behind the point of all times: nanoseconds. The last bits of a sum are not the same on every machine (32-bit Intel
# counts with 80 bits), those of a decimal number are.
TIME_DIGITS = 9


class Deadlock(Exception):
    """Nothing is ready and nothing is scheduled: every task waits for another."""


class Escaped(Exception):
    """The code under test asked for something that is not simulated."""


class Exhausted(BaseException):
    """The run has used up what it may: see `watchdog`."""


class Ended(BaseException):
    """Raised in a process that ends itself, to unwind the callback that runs."""


class Process:
    """One life of one program on one machine. A restart is another process."""

    __slots__ = (
        "busy_until", "disk_delay", "held", "host", "is_alive", "is_busy", "is_paused", "name", "on_death",
        "step_seconds", "watch",
    )  # fmt: skip

    def __init__(self, name: str, host: str) -> None:
        self.name = name
        self.host = host
        self.is_alive = True
        self.is_paused = False
        self.is_busy = False  # its only thread does something that takes time, until `busy_until`
        self.busy_until = 0.0
        self.step_seconds = 0.0  # what each step of it takes
        self.held: deque[SimHandle] = deque()
        # Told of its end, once: connections break.
        self.on_death: dict[Callable[[], None], None] = {}
        # Called after each of its steps.
        self.watch: Callable[[], None] | None = None
        # Milliseconds that a piece of blocking work takes, at most, before and after its effect.
        self.disk_delay = (0.05, 2.0)

    def __str__(self) -> str:
        return self.name

    def context(self) -> contextvars.Context:
        """A context in which everything belongs to this process."""
        context = contextvars.Context()
        context.run(PROCESS.set, self)
        return context

    def die(self) -> None:
        """Nothing of it runs any more, from now on."""
        self.is_alive = False
        self.held.clear()
        told, self.on_death = self.on_death, {}
        for tell in told:
            tell()


PROCESS: contextvars.ContextVar[Process | None] = contextvars.ContextVar("process", default=None)
NOBODY = contextvars.Context()


class SimHandle:
    """A callback that waits for its turn, or for its time: what asyncio calls a Handle or a TimerHandle.

    Most steps of a run make one, so it does nothing that nobody asks for here.
    """

    __slots__ = ("_when", "args", "call", "context", "is_cancelled")

    def __init__(self, call: Callable[..., Any], args: tuple[Any, ...], context: Any, when: float = 0.0) -> None:
        self.call = call
        self.args = args
        self.context = copy_context() if context is None else context
        self.is_cancelled = False
        self._when = when

    def cancel(self) -> None:
        self.is_cancelled = True
        self.call, self.args = no_call, ()

    def cancelled(self) -> bool:
        return self.is_cancelled

    def when(self) -> float:
        return self._when


def no_call() -> None:
    """What is left of a callback that was cancelled."""


class SimFuture(asyncio.Future[Any]):
    """A future whose place in a set does not depend on where it lies in memory."""

    _number = 0
    process: Process | None = None  # that made it

    def __hash__(self) -> int:
        if not self._number:
            self._number = number_in(self.get_loop())
        return self._number

    def __eq__(self, other: object) -> bool:
        return self is other


class SimTask(asyncio.Task[Any]):
    """A task, likewise."""

    _number = 0

    def __hash__(self) -> int:
        if not self._number:
            self._number = number_in(self.get_loop())
        return self._number

    def __eq__(self, other: object) -> bool:
        return self is other


class SimLoop(asyncio.BaseEventLoop):
    """`network` opens its connections; `failed` is told of errors that nobody caught.

    Its handles have what asyncio asks of them and no more: mypy is told so where they are made.
    """

    _ready: deque[SimHandle]  # of asyncio, as is the next
    _stopping: bool

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.random = random.Random(seed)
        self.steps = 0
        self._moment = (0.0, 0)  # and how many steps there had been when it began
        self.tasks: list[asyncio.Task[Any]] = []
        self.network: Any = None
        self.is_in_thread = False  # what runs would not hold the loop
        self.exhausted: Exhausted | None = None
        self.now = 0.0
        self.before_time_goes_on: Callable[[], None] = lambda: None  # told when nothing is ready any more
        self._numbers = 0
        self._timers: list[tuple[float, int, SimHandle]] = []
        self._trace = blake2b(digest_size=8)

    # --- time, names, chance ------------------------------------------------------------------------------------

    def time(self) -> float:
        return self.now

    def milliseconds(self) -> int:
        return int(round(self.now * 1000, TIME_DIGITS - 3))

    def after(self, seconds: float) -> float:
        """The moment that is so far away."""
        return round(self.now + seconds, TIME_DIGITS)

    def number(self) -> int:
        """The next number: of a task, a future, a timer."""
        self._numbers += 1
        return self._numbers

    def trace(self, *fields: object) -> None:
        """Something happened. The digest of all that happened is the same for the same seed, always."""
        self._trace.update(f"{self.now:.9f} {fields}\n".encode())

    @property
    def digest(self) -> str:
        return self._trace.hexdigest()

    def create_future(self) -> SimFuture:
        future = SimFuture(loop=self)
        future.process = PROCESS.get()
        return future

    def create_task(self, coro: Any, *, name: object = None, context: Any = None) -> SimTask:
        task = SimTask(coro, loop=self, name=str(name or "a task"), context=context)
        self.tasks.append(task)
        if len(self.tasks) > TASKS_KEPT_MAX:
            with keeping_quiet():
                self.tasks = [known for known in self.tasks if not known.done()]
        return task

    # --- running ------------------------------------------------------------------------------------------------

    def call_soon(  # type: ignore[override] # a handle of its own
        self, callback: Callable[..., Any], *args: Any, context: Any = None
    ) -> SimHandle:
        handle = SimHandle(callback, args, context)
        self._ready.append(handle)
        return handle

    call_soon_threadsafe = call_soon  # type: ignore[assignment] # a handle of its own

    def call_at(  # type: ignore[override] # a handle of its own
        self, when: float, callback: Callable[..., Any], *args: Any, context: Any = None
    ) -> SimHandle:
        is_later, when = when > self.now, round(when, TIME_DIGITS)
        if is_later and when <= self.now:
            when = self.after(10**-TIME_DIGITS)  # who waits for less gets on all the same
        handle = SimHandle(callback, args, context, when)
        self._numbers += 1
        heappush(self._timers, (when, self._numbers, handle))
        return handle

    def call_later(  # type: ignore[override] # a handle of its own
        self, delay: float, callback: Callable[..., Any], *args: Any, context: Any = None
    ) -> SimHandle:
        return self.call_at(self.now + delay, callback, *args, context=context)

    def _run_once(self) -> None:
        """Run until the loop is to stop. Each turn of it takes what is ready now, and then what has become due."""
        ready, timers = self._ready, self._timers
        while not self._stopping:
            if not ready:
                self._go_on_in_time()
            while timers and timers[0][0] <= self.now:
                ready.append(heappop(timers)[2])
            for _ in range(len(ready)):
                handle = ready.popleft()
                if not handle.is_cancelled:
                    self._step(handle)
            if self.now > self._moment[0]:
                self._moment = (self.now, self.steps)
            if self.exhausted is not None:
                raise self.exhausted
            if self.steps > STEPS_MAX or self.steps - self._moment[1] > STEPS_AT_ONCE_MAX:
                raise Deadlock(f"{self.steps} steps until {self.now:.3f} s: somebody runs in a circle")

    def _go_on_in_time(self) -> None:
        """To the moment at which something is due. Raises Deadlock."""
        self.before_time_goes_on()
        timers = self._timers
        while timers and timers[0][2].is_cancelled:
            heappop(timers)
        if not timers:
            raise Deadlock("nothing is ready and nothing is scheduled")
        self.now = max(self.now, timers[0][0])

    def _step(self, handle: SimHandle) -> None:
        process = handle.context.get(PROCESS)
        if process is not None:
            if process.is_paused or process.is_busy:
                process.held.append(handle)
                return
            if not process.is_alive:
                return
        self.steps += 1
        try:
            handle.context.run(handle.call, *handle.args)
        except (SystemExit, KeyboardInterrupt, Exhausted):
            raise
        except BaseException as error:  # noqa: BLE001 - as asyncio does it
            self.call_exception_handler({"message": f"a callback failed: {handle.call}", "exception": error})
        if process is not None and process.is_alive:
            if process.watch is not None:
                process.watch()
            if process.step_seconds:
                self.occupy(process, process.step_seconds)

    def resume(self, process: Process) -> None:
        """What came up while it was paused happens now, in that order."""
        process.is_paused = False
        self._release(process)

    def occupy(self, process: Process, seconds: float) -> None:
        """Its only thread does something for so long, when it is done with what it does already; all else waits."""
        process.busy_until = round(max(process.busy_until, self.now) + seconds, TIME_DIGITS)
        if not process.is_busy:
            process.is_busy = True
            self.call_at(process.busy_until, self._is_through, process, context=NOBODY)

    def relieve(self, process: Process) -> None:
        """What it is at takes no longer."""
        if process.is_busy:
            process.busy_until = self.now
            self._is_through(process)

    def _is_through(self, process: Process) -> None:
        if self.now < process.busy_until:
            self.call_at(process.busy_until, self._is_through, process, context=NOBODY)
            return
        process.is_busy = False
        self._release(process)

    def _release(self, process: Process) -> None:
        if not process.is_paused and not process.is_busy:
            held, process.held = process.held, deque()
            self._ready.extend(held)

    def bury(self) -> None:
        """At the end: let go of the tasks of processes that are gone, without a word from them."""
        with keeping_quiet():
            for task in self.tasks:
                task._log_destroy_pending = False  # type: ignore[attr-defined]
                if not task.done():
                    close_quietly(task.get_coro())
            self.tasks = []
            self._ready.clear()
            self._timers.clear()
            gc.collect()  # what circles of references hold goes quietly too

    # --- threads ------------------------------------------------------------------------------------------------

    def run_in_executor(  # type: ignore[override] # the default executor alone
        self, executor: Any, func: Callable[..., Any], *args: Any
    ) -> SimFuture:
        if executor is not None:
            raise Escaped(f"{func} is to run in a pool of its own; use asyncio.to_thread")
        process = PROCESS.get()
        low, high = (0.0, 0.0) if process is None else process.disk_delay
        future = self.create_future()
        before_ms, after_ms = self.random.uniform(low, high), self.random.uniform(0, low)

        def work() -> None:
            self.is_in_thread = True
            try:
                settle, outcome = future.set_result, func(*args)
            except BaseException as error:  # noqa: BLE001 - a thread's pool hands on all of them
                settle, outcome = future.set_exception, error
            self.is_in_thread = False
            self.call_later(after_ms / 1000, lambda: None if future.done() else settle(outcome))

        self.call_later(before_ms / 1000, work)
        return future

    # --- the network, and what there is not ---------------------------------------------------------------------

    async def create_connection(self, protocol_factory: Any, host: Any = None, port: Any = None, **_: Any) -> Any:
        return await self.network.connect(protocol_factory, host, port)

    async def create_server(self, protocol_factory: Any, host: Any = None, port: Any = None, **options: Any) -> Any:
        return self.network.listen(protocol_factory, host, port, start_serving=options.get("start_serving", True))

    async def getaddrinfo(self, *args: Any, **_: Any) -> NoReturn:
        raise Escaped(f"getaddrinfo{args}")

    async def getnameinfo(self, *args: Any, **_: Any) -> NoReturn:
        raise Escaped(f"getnameinfo{args}")

    def _process_events(self, event_list: Any) -> None:
        """There is no selector."""

    def _write_to_self(self) -> None:
        """There is no sleeping selector to wake."""


def number_in(loop: asyncio.AbstractEventLoop) -> int:
    assert isinstance(loop, SimLoop)
    return loop.number()


@contextmanager
def keeping_quiet() -> Iterator[None]:
    """Suppress warnings of coroutines that will not be awaited any more."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        yield


def close_quietly(coroutine: Generator[Any, Any, Any] | Coroutine[Any, Any, Any] | None) -> None:
    """A process that was killed says nothing; here its frames must go all the same."""
    try:
        if coroutine is not None:
            coroutine.close()
    except BaseException:  # noqa: BLE001 - whatever a `finally` of the dead does is of no consequence
        return
