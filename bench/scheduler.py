"""What turns on the loop cost a request while nobody waits for one.

python -m bench.scheduler

A connection without a socket is given one small request after the other, and the answer is ready at once: with the
turns of a broker, and with some that measure, charge and ask for nothing. Both take turns in rounds, and the least of
the rounds counts: whatever else the machine does only adds to it. What is told is CPU time.
"""

import argparse
import asyncio
import time
from struct import pack
from types import SimpleNamespace
from typing import Any, Final

from kavka_broker.loop.timers import Timers
from kavka_broker.loop.turns import Flow, Turns
from kavka_broker.net.connection import Connection
from kavka_broker.net.limits import Limits
from kavka_broker.net.listener import Listener
from kavka_broker.protocol.framing import RequestHeader, encode_request_header
from kavka_broker.request.broker import Client
from kavka_broker.runtime.clock import SystemClock, work_ns

ROUNDS: Final = 15
REQUESTS: Final = 20_000
FOREVER: Final = 1 << 40
"""Turns in one."""
API_VERSIONS: Final = 18


class EndlessTurns(Turns):
    """Turns of a loop that keeps up, whatever else the machine does."""

    @property
    def quantum_ns(self) -> int:
        return self._queue.quantum_ns * FOREVER


class NoTurns(EndlessTurns):
    """Nobody is charged, and nobody waits."""

    def may_begin(self, flow: Flow) -> bool:
        return True

    def charge(self, flow: Flow, cost_ns: int) -> None:
        pass


class Wire(asyncio.Transport):
    """A transport that takes everything."""

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return ("127.0.0.1", 1) if name == "peername" else default

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """There is no buffer."""

    def get_write_buffer_size(self) -> int:
        return 0

    def is_closing(self) -> bool:
        return False

    def pause_reading(self) -> None:
        """Nothing comes by itself."""

    resume_reading = pause_reading

    def write(self, data: object) -> None:
        """It is gone."""


class Answering:
    """Stands in for the dispatcher: every request has its answer at once."""

    audit = None

    def __init__(self) -> None:
        client = Client(0, "bench", 0, "", "")
        api = SimpleNamespace(pipelined=False, name="")
        pieces = [pack(">i", 0)]
        self._exchange = SimpleNamespace(
            api=api, client=client, pieces=pieces, waiting=None, counted_bytes=0, is_login=False, is_between_nodes=False
        )

    def begin(self, _frame: memoryview, _peer: object, _keep: object) -> Any:
        return self._exchange

    def sent(self) -> None:
        """It counts no time."""


class Path:
    """A connection with turns of this kind."""

    def __init__(self, turns: Turns) -> None:
        clock = SystemClock()
        timers = Timers(clock, asyncio.get_running_loop())
        listener = Listener("BENCH", Answering(), Limits(turns=turns), clock, timers)  # type: ignore[arg-type]
        self._connection = Connection(listener)
        self._connection.connection_made(Wire())
        header = encode_request_header(RequestHeader(API_VERSIONS, 0, 7, "bench"))
        self._frame = pack(">i", len(header)) + header
        self.least_ns = float("inf")

    def round(self) -> None:
        """Ask `REQUESTS` times."""
        connection, frame, size = self._connection, self._frame, len(self._frame)
        began_ns = time.process_time_ns()
        for _ in range(REQUESTS):
            connection.get_buffer(-1)[:size] = frame
            connection.buffer_updated(size)
        self.least_ns = min(self.least_ns, (time.process_time_ns() - began_ns) / REQUESTS)


async def measured() -> tuple[float, float]:
    """Return the CPU nanoseconds of a request, with turns and without."""
    with_turns, without = Path(EndlessTurns(work_ns)), Path(NoTurns())
    for _ in range(ROUNDS):
        with_turns.round()
        without.round()
    return with_turns.least_ns, without.least_ns


def main() -> None:
    argparse.ArgumentParser(
        prog="python -m bench.scheduler", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    with_turns, without = asyncio.run(measured())
    print("| | CPU ns a request |\n|---|---:|")
    print(f"| with turns | {with_turns:,.0f} |\n| without | {without:,.0f} |\n| turns | {with_turns - without:,.0f} |")


if __name__ == "__main__":
    main()
