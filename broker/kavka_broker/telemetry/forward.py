"""What clients push goes on to an OpenTelemetry collector, where `kavka.telemetry.otlp.endpoint` names one.

A push is sent as it was, unpacked, with the client's names among the attributes of its resources, by HTTP POST from a
thread, one after the other. A collector that is away or slow holds nobody up: pushes wait in a bounded queue, and those
that find it full, or that the collector does not take, are dropped and counted.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from kavka_broker.logs import get

log = get("telemetry")

WAITING_MAX: Final = 256
WAITING_BYTES_MAX: Final = 8 * 1024 * 1024


class Forward:
    """Sends pushes to one collector by `post`, which raises OSError where the collector does not take one."""

    def __init__(self, endpoint: str, post: Callable[[str, bytes], object]) -> None:
        assert endpoint, "nowhere to send to"
        self._endpoint = endpoint
        self._post = post
        self._waiting: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._sending: asyncio.Task[None] | None = None
        self.sent_total = self.dropped_total = 0
        self._is_failing = False

    def send(self, push: bytes) -> None:
        """Queue a push; dropped where the queue is full."""
        if len(self._waiting) >= WAITING_MAX or self._waiting_bytes + len(push) > WAITING_BYTES_MAX:
            self.dropped_total += 1
            return
        self._waiting.append(push)
        self._waiting_bytes += len(push)
        if self._sending is None or self._sending.done():
            self._sending = asyncio.get_running_loop().create_task(self._send_all(), name="forward telemetry")

    async def stop(self) -> None:
        """Stop sending; what waits is dropped."""
        if self._sending is not None:
            self._sending.cancel()
            with suppress(asyncio.CancelledError):
                await self._sending
        self.dropped_total += len(self._waiting)
        self._waiting.clear()

    async def _send_all(self) -> None:
        while self._waiting:
            push = self._waiting.popleft()
            self._waiting_bytes -= len(push)
            try:
                await asyncio.to_thread(self._post, self._endpoint, push)
            except OSError as problem:
                self.dropped_total += 1
                self._tell(str(problem))
            else:
                self.sent_total += 1
                self._is_failing = False

    def _tell(self, reason: str) -> None:
        """Log the first of several failures; the metrics count them all."""
        if not self._is_failing:
            log.warning("telemetry.not_forwarded", endpoint=self._endpoint, reason=reason)
        self._is_failing = True
