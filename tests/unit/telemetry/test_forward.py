"""What is passed on to a collector, and what becomes of it when the collector is slow or away."""

import asyncio
import threading

import pytest

from kavka_broker.telemetry.forward import WAITING_BYTES_MAX, WAITING_MAX, Forward
from tests.support.waiting import until


def waited(event: threading.Event) -> None:
    event.wait()


def test_pushes_are_sent_in_their_order() -> None:
    posted: list[bytes] = []

    async def scenario() -> Forward:
        forward = Forward("http://collector", lambda _, push: posted.append(push))
        for number in range(5):
            forward.send(bytes([number]))
        await until(lambda: forward.sent_total == 5)
        forward.send(b"later")
        await until(lambda: forward.sent_total == 6)
        return forward

    forward = asyncio.run(scenario())
    assert posted == [b"\0", b"\1", b"\2", b"\3", b"\4", b"later"]
    assert forward.dropped_total == 0


def test_what_a_collector_does_not_take_is_dropped_and_counted() -> None:
    async def scenario() -> Forward:
        def refuse(endpoint: str, push: bytes) -> None:
            raise ConnectionRefusedError(endpoint)

        forward = Forward("http://collector", refuse)
        forward.send(b"1")
        forward.send(b"2")
        await until(lambda: forward.dropped_total == 2)
        return forward

    assert asyncio.run(scenario()).sent_total == 0


@pytest.mark.parametrize(("size", "fit"), [(1, WAITING_MAX), (WAITING_BYTES_MAX // 4, 4)])
def test_what_waits_for_a_slow_collector_is_bounded(size: int, fit: int) -> None:
    async def scenario() -> Forward:
        go_on = threading.Event()
        forward = Forward("http://collector", lambda *_: waited(go_on))
        for _ in range(fit + 3):
            forward.send(bytes(size))
        assert forward.dropped_total == 3
        go_on.set()
        await until(lambda: forward.sent_total == fit)
        return forward

    assert asyncio.run(scenario()).dropped_total == 3


def test_a_stop_drops_what_waits() -> None:
    async def scenario() -> Forward:
        go_on = threading.Event()
        forward = Forward("http://collector", lambda *_: waited(go_on))
        for _ in range(3):
            forward.send(b"push")
        await asyncio.sleep(0)  # the first one is under way
        await forward.stop()
        go_on.set()
        return forward

    assert asyncio.run(scenario()).dropped_total == 2
