"""Everything a broker takes from outside itself, in one place: disk, clocks, chance, threads.

`REAL` is the operating system. The simulator hands a broker another world, whose disk forgets, whose clock jumps and
whose chance is drawn from a seed; the broker cannot tell. Of the network only the listening sockets are here; the rest
comes with the loop: connections ask `asyncio` for transports, and so does the wheel of timers for time.

Threads other than asyncio's executor are not under the loop's control, so a world says how many there may be.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass

from kavka_broker.interfaces import Clock
from kavka_broker.net.acceptor import Acceptor, Admission, SocketAcceptor
from kavka_broker.runtime.clock import SystemClock, thread_ns, work_ns
from kavka_broker.storage.disk import Disk, RealDisk

INT32_MAX = 2**31 - 1


@dataclass(frozen=True, slots=True)
class World:
    """Chance, time and files: everything that the broker does not make itself."""

    disk: Disk
    clock: Clock
    random_bytes: Callable[[int], bytes]
    threads_max: int = 4
    """Threads that open or close logs side by side; with 1 the caller's own does it."""
    acceptor: Callable[[Admission], Acceptor] = SocketAcceptor
    """What a listener listens with."""
    work_ns: Callable[[], int] = work_ns
    """Measures the time that requests take on the loop."""
    thread_ns: Callable[[], int] = thread_ns
    """Measures the time that requests take of a thread; called in that."""

    def integer(self, low: int, high: int) -> int:
        """Return one of `low` to `high`, all as likely, except for a bias of 2^-32 for the span of an int32."""
        return low + int.from_bytes(self.random_bytes(8), "big") % (high - low + 1)

    def session_id(self) -> int:
        return self.integer(1, INT32_MAX)

    def suffix(self) -> str:
        """Return the suffix that makes a member id unique: 128 bits, as text."""
        drawn = self.random_bytes(16).hex()
        return "-".join((drawn[:8], drawn[8:12], drawn[12:16], drawn[16:20], drawn[20:]))


REAL = World(RealDisk(), SystemClock(), os.urandom)
