"""A proxy before a broker that loses connections, and delivers late what its clients have asked over them.

Of each request for a coordinator of transactions that passes, a share drawn from the seed meets a loss: the client is
told at once that its connection is gone, and asks again over another one. The request itself was under way: it arrives
a little later, over the connection that the client has given up, as packets do that a network has held up. Its answer
reaches nobody. A second share meets a connection that is reset on both sides, before the request arrives or behind it.
"""

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random
from typing import Final

ADD_PARTITIONS, ADD_OFFSETS, END_TXN = 24, 25, 26
KEYS: Final = (ADD_PARTITIONS, ADD_OFFSETS, END_TXN)
PIECE_BYTES: Final = 65_536
STARTED_SECONDS_MAX: Final = 60.0


@dataclass
class LateRequests:
    """`late_share` and `reset_share` are of the requests with these keys, `late_seconds` how late they may be."""

    target: tuple[str, int]
    seed: int
    keys: tuple[int, ...] = KEYS
    late_share: float = 0.1
    reset_share: float = 0.05
    late_seconds: tuple[float, float] = (0.01, 0.5)
    late: int = 0  # requests that were delivered over connections that their clients had given up
    reset: int = 0
    refused: int = 0  # connections that the broker has closed while their clients used them
    is_at_work: bool = True  # whether it loses connections

    def __post_init__(self) -> None:
        self._random = Random(self.seed)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass one connection on."""
        try:
            broker_reader, broker_writer = await asyncio.open_connection(*self.target)
        except OSError:
            writer.transport.abort()
            return
        answers = asyncio.ensure_future(self._answers(broker_reader, writer))
        try:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                await self._requests(reader, writer, broker_writer)
        finally:
            writer.transport.abort()
            broker_writer.transport.abort()
            await asyncio.gather(answers, return_exceptions=True)

    async def _requests(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, broker_writer: asyncio.StreamWriter
    ) -> None:
        while True:
            head = await reader.readexactly(6)
            frame = head + await reader.readexactly(int.from_bytes(head[:4], "big") - 2)
            drawn = self._random.random() if int.from_bytes(head[4:], "big") in self.keys and self.is_at_work else 1.0
            if drawn < self.late_share:
                writer.transport.abort()
                await asyncio.sleep(self._random.uniform(*self.late_seconds))
                self.late += 1
                broker_writer.write(frame)
                await broker_writer.drain()
                await asyncio.sleep(self.late_seconds[1])  # the broker reads it before it learns of the end
                return
            if drawn < self.late_share + self.reset_share:
                self.reset += 1
                if self._random.random() < 0.5:
                    broker_writer.write(frame)
                    await broker_writer.drain()
                return
            broker_writer.write(frame)
            await broker_writer.drain()

    async def _answers(self, broker_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while piece := await broker_reader.read(PIECE_BYTES):
                if not writer.is_closing():
                    writer.write(piece)
                    await writer.drain()
        self.refused += not writer.is_closing()
        writer.close()


@contextmanager
def late_requests(proxy: LateRequests, port: int) -> Iterator[LateRequests]:
    """Serve in a thread of its own until the end of the block."""
    loop, is_ready = asyncio.new_event_loop(), threading.Event()

    async def serve() -> None:
        server = await asyncio.start_server(proxy.serve, "127.0.0.1", port)
        is_ready.set()
        async with server:
            await asyncio.Event().wait()

    def run() -> None:
        with contextlib.suppress(asyncio.CancelledError):
            loop.run_until_complete(task)
        loop.set_exception_handler(lambda _, __: None)  # asyncio's streams complain of tasks that are cancelled
        for other in (others := asyncio.all_tasks(loop)):
            other.cancel()
        loop.run_until_complete(asyncio.gather(*others, return_exceptions=True))
        loop.run_until_complete(asyncio.sleep(0))  # what was aborted closes

    task = loop.create_task(serve())
    thread = threading.Thread(target=run, name="late requests", daemon=True)
    thread.start()
    assert is_ready.wait(STARTED_SECONDS_MAX), "the proxy does not start"
    try:
        yield proxy
    finally:
        loop.call_soon_threadsafe(task.cancel)
        thread.join()
        loop.close()
