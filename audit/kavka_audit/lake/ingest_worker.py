"""A process that reads pieces of the trail for another: `parallel_ingest` starts it, and says what it does.

It gets by its socket where modules are found, what opens the trail and what reads it, and then pieces. For each it
writes files beside the lake and tells what is in them. When the socket ends, the process that reads for the lake is
gone, and this one ends at once, in the middle of whatever it does.
"""

import os
import pickle
import signal
import sys
import threading
import traceback
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from queue import SimpleQueue

from kavka_audit.lake.ingest import Range

Order = tuple[int, Range, Path]


def main(connection: Connection) -> None:
    """Read pieces until the socket ends, or until one cannot be read."""
    try:
        sys.path[:] = connection.recv()
        (opener, reader), orders = connection.recv(), SimpleQueue[Order]()
        threading.Thread(target=_listen, args=(connection, orders), daemon=True).start()
        trail = opener()
        while True:
            number, span, part = orders.get()
            connection.send((number, reader(trail, span, part), part))
    except Exception as problem:  # noqa: BLE001 - the other process raises it
        problem.add_note("in a process that reads the trail:\n" + traceback.format_exc())
        with suppress(OSError):  # nobody is there any more
            connection.send(_portable(problem))


def _listen(connection: Connection, orders: SimpleQueue[Order]) -> None:
    try:
        while True:
            orders.put(connection.recv())
    except (EOFError, OSError):
        os.kill(os.getpid(), signal.SIGKILL)  # the other thread may be anywhere


def _portable(problem: Exception) -> Exception:
    """Return an exception as it is, or one with its words if it cannot be sent."""
    try:
        pickle.loads(pickle.dumps(problem))  # noqa: S301 - what this process has made itself
    except Exception:  # noqa: BLE001 - whatever its class does
        return RuntimeError(f"{type(problem).__name__}: {problem}")
    return problem


if __name__ == "__main__":
    main(Connection(int(sys.argv[1])))
