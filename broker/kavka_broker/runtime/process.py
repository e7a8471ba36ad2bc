"""The broker as a process: signals, crash, exit code.

SIGTERM and SIGINT begin a controlled shutdown; a second one stops at once. An error that means that our own rules are
broken ends the process without one, wherever it comes up (`crash`).
"""

import asyncio
import errno
import gc
import os
import resource
import signal
import sys
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final

from kavka_broker.core.config.broker import BrokerConfig
from kavka_broker.logs import get
from kavka_broker.replica.leading.log_syncs import SYNCS_PER_DIRECTORY_MAX
from kavka_broker.runtime.crash import Crash
from kavka_broker.runtime.environment import REAL, World
from kavka_broker.runtime.event_loop import new_event_loop
from kavka_broker.runtime.log_rate_limit import Quiet
from kavka_broker.runtime.logs import configure
from kavka_broker.runtime.server import Server, StartError

log = get("runtime")

#: Errors of accept where there is no descriptor or no memory left for one more connection.
OUT_OF_RESOURCES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
WARNING_INTERVAL_S = 10.0

EXIT_CONFIG = 2
EXIT_STOPPED_AT_ONCE = 130

# Requests make no reference cycles, and connections break theirs as they end (`net.transports`, `net.tls_protocol`), so
# a collection finds nothing: never look at what start made. Nor does a start,
# which would look at all of its logs again and again. What a large request makes is alive while it is served: a
# collection looks at 2,500 such objects, or at the 7,500 of three collections, and hardly ever at all of them. Each
# object is looked at as often as with larger steps, but the loop is held for less at a time.
GC_THRESHOLDS = (2_500, 2, 60_000)

# How long a thread may go on in Python while the loop waits. Python's own 5 ms would be added to a request again and
# again beside a thread that prepares, reads or cleans. At 0.2 ms that thread does 2 % less than at 1 ms.
SWITCH_INTERVAL_S = 0.0002

#: Threads for all that blocks, beside those that sync the logs of a directory. One is made when none is free.
THREADS_MAX: Final = 16


def run_until_stopped(
    config: BrokerConfig,
    world: World = REAL,
    new_loop: Callable[[str], asyncio.AbstractEventLoop] = new_event_loop,
    *,
    set_up_logs: Callable[[BrokerConfig], object] = configure,
    work: Callable[[BrokerConfig, World], Coroutine[Any, Any, None]] | None = None,
) -> int:
    """Run a broker in this process; returns the exit code. Fixtures of tests bring a world and a loop with faults."""
    set_up_logs(config)
    log.info("open_files.allowed", open_max=allow_open_files())
    try:
        with asyncio.Runner(loop_factory=partial(new_loop, config["kavka.event.loop"])) as runner:
            runner.run((work or serve)(config, world))
    except StartError as error:
        log.error("broker.refused", reason=str(error))
        return EXIT_CONFIG
    return 0


def allow_open_files() -> int:
    """Take the open files that the hard limit grants; returns how many. Shells start processes with 1,024, which a
    broker needs for its first thousand partitions and clients; Java takes the hard limit by itself.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (OSError, ValueError):
            return soft
    return hard


def threads_max(config: BrokerConfig) -> int:
    """Return how many threads there may be. A disk that hangs holds all that sync its logs, and the metadata log, which
    may be on another disk, still needs one. asyncio's own number goes by the processors: six, where there are two.
    """
    return THREADS_MAX + SYNCS_PER_DIRECTORY_MAX * len(config.log_dirs)


async def serve(
    config: BrokerConfig,
    world: World = REAL,
    *,
    make_server: Callable[..., Any] = Server,
    make_crash: Callable[[BrokerConfig], Any] = Crash,
    collector: Any = gc,
) -> None:
    """Run a node until it gets a signal. A failed assertion ends the process. `collector` is Python's, of garbage."""
    crash = make_crash(config)
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(partial(failed_on_loop, crash))
    loop.set_default_executor(ThreadPoolExecutor(threads_max(config), "blocking"))
    try:
        await _serve(config, crash, world, make_server, collector)
    except AssertionError as error:
        crash(error)


async def _serve(
    config: BrokerConfig, crash: Crash, world: World, make_server: Callable[..., Server], collector: Any
) -> None:
    collector.collect()
    collector.set_threshold(*GC_THRESHOLDS)
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    server = make_server(config, crash, world, failed_assertions_total=crash.failed_total)
    crash.facts = server.facts
    server.watchdog.watch(asyncio.get_running_loop())
    starting = asyncio.create_task(server.start(), name="start")
    # A start may wait for other nodes forever, and must end when it is asked to.
    stopping = Stopping(starting.cancel)
    try:
        await starting
        collector.freeze()  # without a search for garbage, which among very many logs holds the loop for seconds
        await stopping.requested.wait()
    except asyncio.CancelledError:
        if not stopping.requested.is_set():
            raise
    except AssertionError as error:
        crash(error)  # the node does not stop cleanly
    finally:
        await server.stop(stopping.reason)
        server.watchdog.unwatch()


class Stopping:
    """Turns signals into the wish to stop, which `tell` passes on."""

    def __init__(self, tell: Callable[[], object]) -> None:
        self._tell = tell
        self.requested = asyncio.Event()
        self.reason = "the process ends"
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._received, signal.Signals(number).name)

    def _received(self, name: str) -> None:
        if self.requested.is_set():
            log.warning("broker.aborted", signal=name)
            os._exit(EXIT_STOPPED_AT_ONCE)
        self.reason = name
        self.requested.set()
        self._tell()


_QUIET: Final = Quiet(WARNING_INTERVAL_S)


def failed_on_loop(
    crash: Callable[[BaseException], object],
    _: asyncio.AbstractEventLoop,
    context: dict[str, Any],
    quiet: Quiet = _QUIET,
) -> None:
    """Handle an uncaught error of a timer, a callback or a task. A broken invariant ends the process."""
    error, reason = context.get("exception"), context["message"]
    if "socket" in context and isinstance(error, OSError) and error.errno in OUT_OF_RESOURCES:
        out_of_resources(reason, error, quiet)
        return
    if error is None:
        log.error("loop.failed", reason=reason)
        return
    if isinstance(error, AssertionError):
        crash(error)
    log.exception("loop.failed", error, reason=reason)


def out_of_resources(reason: str, error: OSError, quiet: Quiet) -> None:
    """Warn that connections wait in the kernel for a descriptor; the loop tries again each second, per listener."""
    hushed = quiet.hushed()
    if hushed is not None:
        limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        log.warning("resources.exhausted", reason=f"{reason}: {error}", open_max=limit, repeated=hushed)
