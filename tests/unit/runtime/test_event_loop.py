"""Which loop a process runs on, and that the timers of each fire in time."""

import asyncio
import logging
import sys
from functools import partial

import pytest

from kavka_broker.core.config.broker import BrokerConfig
from kavka_broker.logs import LOGGER_NAME
from kavka_broker.loop.timers import Timers
from kavka_broker.runtime import process
from kavka_broker.runtime.clock import SystemClock
from kavka_broker.runtime.event_loop import new_event_loop

NEEDED = {"node.id": "1", "process.roles": "broker", "controller.listener.names": "CONTROLLER"}


@pytest.mark.parametrize(
    ("settings", "module"), [({}, "uvloop"), ({"kavka.event.loop": "asyncio"}, "asyncio.unix_events")]
)
def test_a_process_runs_on_the_loop_of_its_configuration(settings: dict[str, str], module: str) -> None:
    found: list[str] = []

    async def serve(*_: object) -> None:
        found.extend(kind.__module__ for kind in type(asyncio.get_running_loop()).__mro__)

    config = BrokerConfig.parse({**NEEDED, "log.dirs": "/a", **settings})
    assert process.run_until_stopped(config, set_up_logs=lambda _: None, work=serve) == 0
    assert module in found


def test_it_is_asyncio_s_where_uvloop_is_not_installed(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delitem(sys.modules, "kavka_broker.runtime.uv_loop", raising=False)
    monkeypatch.setitem(sys.modules, "uvloop", None)
    with caplog.at_level(logging.WARNING, LOGGER_NAME):
        loop = new_event_loop("uvloop")
    loop.close()
    assert isinstance(loop, asyncio.BaseEventLoop)
    assert [record.getMessage() for record in caplog.records] == ["event_loop.not_found"]


@pytest.mark.parametrize("name", ["asyncio", "uvloop"])
def test_a_timer_of_the_broker_fires_at_the_first_wake_up(name: str) -> None:
    """A loop that rounds the delay to the nearest millisecond wakes up early for half of them, and then is busy with
    waking up until it is time.
    """
    fired: list[float] = []

    async def scenario() -> None:
        clock, wakes = SystemClock(), 0
        timers = Timers(clock, asyncio.get_running_loop())
        fire = timers.fire_due

        def counted() -> None:
            nonlocal wakes
            wakes += 1
            fire()

        timers.fire_due = counted  # type: ignore[method-assign]
        for number in range(20):
            done, began_ms = asyncio.Event(), clock.monotonic_ms()
            timers.after(1 + number / 7, done.set)
            await done.wait()
            fired.append(clock.monotonic_ms() - began_ms - number / 7 - 1)
        assert wakes == len(fired)

    with asyncio.Runner(loop_factory=partial(new_event_loop, name)) as runner:
        runner.run(scenario())
    assert min(fired) >= 0
