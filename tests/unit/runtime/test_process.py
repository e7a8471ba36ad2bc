"""What the process asks of the operating system, and what becomes of errors that nobody caught."""

import asyncio
import errno
import gc
import logging
import os
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from types import SimpleNamespace

import pytest

from kavka_broker.core.config.broker import BrokerConfig
from kavka_broker.protocol.errors import InvariantViolation
from kavka_broker.replica.leading.log_syncs import SYNCS_PER_DIRECTORY_MAX
from kavka_broker.runtime import process
from kavka_broker.runtime.log_rate_limit import Quiet
from kavka_broker.runtime.process import allow_open_files, failed_on_loop
from tests.support.waiting import turns


def test_as_many_files_may_be_open_as_the_system_allows() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    soft, hard = before
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 1024) - 1, hard))
        assert allow_open_files() == hard
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (hard, hard)
        assert allow_open_files() == hard
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_a_start_imports_nothing_that_only_a_scrape_needs() -> None:
    """Half a second to the first answer is for importing, above all (docs/adr/0005)."""
    later = ("aiohttp", "prometheus_client", "kavka_broker.runtime.metrics", "multiprocessing", "urllib.request")
    program = f"import sys, kavka_broker.runtime.process; print([one for one in {later} if one in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert ran.stdout.strip() == "[]"


@pytest.fixture
def restored() -> Iterator[None]:
    """Give the interpreter back what a node sets for its whole process."""
    before = gc.get_threshold(), sys.getswitchinterval()
    yield
    gc.unfreeze()
    gc.set_threshold(*before[0])
    sys.setswitchinterval(before[1])


NEEDED = {"node.id": "1", "process.roles": "broker", "controller.listener.names": "CONTROLLER"}


class Started:
    """A server that comes up and stops."""

    watchdog = SimpleNamespace(watch=lambda loop: None, unwatch=lambda: None)
    facts = dict

    def __init__(self, *_: object, **__: object) -> None:
        pass

    async def start(self) -> None:
        """Nothing to wait for."""

    async def stop(self, reason: str) -> None:
        """Nor here."""


@pytest.mark.usefixtures("restored")
def test_nobody_searches_for_garbage_among_the_logs_that_a_start_has_opened() -> None:
    """That holds the loop for two seconds where there are 100,000 of them, just as the node begins to serve."""
    done: list[str] = []

    class Noted(Started):
        async def start(self) -> None:
            done.append("start")

        async def stop(self, reason: str) -> None:
            done.append(reason)

    def freeze() -> None:
        done.append("freeze")
        os.kill(os.getpid(), signal.SIGTERM)

    collector = SimpleNamespace(collect=lambda: done.append("collect"), freeze=freeze, set_threshold=lambda *_: None)
    config = BrokerConfig.parse({**NEEDED, "log.dirs": "/a"})
    asyncio.run(process.serve(config, make_server=Noted, collector=collector))
    assert done == ["collect", "start", "freeze", "SIGTERM"]


def test_a_collection_looks_at_few_objects_and_at_all_hardly_ever() -> None:
    """To look at what large requests keep alive held the loop for 131 ms, and at 30,000 objects for 5 to 14 ms."""
    young, old, all_of_them = process.GC_THRESHOLDS
    assert young * (old + 1) <= 7_500
    assert young * old * all_of_them >= 250_000_000


@pytest.mark.usefixtures("restored")
def test_a_thread_is_left_where_all_log_directories_hang() -> None:
    """However few processors there are: the metadata log is synced by one."""
    goes_on, answers = threading.Event(), list[str]()
    hanging = 3 * SYNCS_PER_DIRECTORY_MAX

    class Hanging(Started):
        async def start(self) -> None:
            waiting = [asyncio.create_task(asyncio.to_thread(goes_on.wait, 120)) for _ in range(hanging)]
            await asyncio.sleep(0)
            answers.append(await asyncio.wait_for(asyncio.to_thread(lambda: "synced"), 60))
            goes_on.set()
            await asyncio.gather(*waiting)
            os.kill(os.getpid(), signal.SIGTERM)

    asyncio.run(process.serve(BrokerConfig.parse({**NEEDED, "log.dirs": "/a,/b,/c"}), make_server=Hanging))
    assert answers == ["synced"]


def run_callback(callback: Callable[[], object], crashes: list[BaseException]) -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(partial(failed_on_loop, crashes.append))
        loop.call_soon(callback)
        await turns()

    asyncio.run(scenario())


def test_an_error_in_a_callback_is_told_and_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    crashes: list[BaseException] = []
    with caplog.at_level(logging.ERROR, "kavka"):
        run_callback(lambda: int("none"), crashes)
    assert crashes == []
    assert [record.getMessage() for record in caplog.records] == ["loop.failed"]


def test_a_broken_invariant_in_a_callback_ends_the_process() -> None:
    crashes: list[BaseException] = []

    def broken() -> None:
        raise InvariantViolation("broken")

    run_callback(broken, crashes)
    assert [str(one) for one in crashes] == ["broken"]


@pytest.mark.usefixtures("restored")
def test_an_assertion_that_fails_at_the_start_ends_the_process_without_a_clean_stop() -> None:
    """A clean stop would say of the logs that they are as they should be."""
    done: list[str] = []

    class Ended(BaseException):
        pass

    class Broken(Started):
        async def start(self) -> None:
            raise InvariantViolation("broken")

        async def stop(self, reason: str) -> None:
            done.append(reason)

    class Crash:
        failed_total = 0

        def __init__(self, _: object) -> None:
            pass

        def __call__(self, error: BaseException) -> None:
            assert not done
            done.append(str(error))
            raise Ended

    config = BrokerConfig.parse({**NEEDED, "log.dirs": "/a"})
    with pytest.raises(Ended):
        asyncio.run(process.serve(config, make_server=Broken, make_crash=Crash))
    assert done[0] == "broken"


def test_too_few_descriptors_are_one_warning_in_a_while(caplog: pytest.LogCaptureFixture) -> None:
    """The loop tells of it each second for each listener, with a traceback; nothing is wrong with the broker."""
    now_s = [0.0]
    crashes: list[BaseException] = []
    quiet = Quiet(10.0, lambda: now_s[0])

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        context = {"message": "accept", "exception": OSError(errno.EMFILE, "Too many open files"), "socket": None}
        for second in range(25):
            now_s[0] = float(second)
            failed_on_loop(crashes.append, loop, context, quiet)

    with caplog.at_level(logging.WARNING, "kavka"):
        asyncio.run(scenario())
    assert crashes == []
    assert [one.getMessage() for one in caplog.records] == ["resources.exhausted"] * 3
    assert [one.fields["repeated"] for one in caplog.records] == [0, 9, 9]  # type: ignore[attr-defined]
