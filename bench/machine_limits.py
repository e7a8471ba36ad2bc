"""What this machine takes for the least that a broker can do: no figure of a broker can be better than these.

Taken before any broker runs, and written into every result, so that figures of two machines, or of a busy and a quiet
hour, can be told apart.
"""

import multiprocessing
import os
import socket
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final

ECHOES: Final = 5_000
ECHO_BYTES: Final = 100
SYNCS: Final = 200
SYNCED_BYTES: Final = 1_000
WRITTEN_BYTES: Final = 256 << 20
WRITE_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Effort:
    """How often each is done."""

    echoes: int = ECHOES
    syncs: int = SYNCS
    writes: int = WRITTEN_BYTES // WRITE_BYTES


EFFORT: Final = Effort()


def measure(directory: Path, effort: Effort = EFFORT) -> dict[str, float]:
    """All floors, by what they are and their unit; medians. Files are made in `directory`, where brokers' logs go."""
    with tempfile.TemporaryDirectory(dir=directory) as inside:
        return {
            "floor_loopback_echo_us": round(loopback_echo_us(effort.echoes), 1),
            "floor_fdatasync_ms": round(fdatasync_ms(Path(inside) / "synced", effort.syncs), 3),
            "floor_page_cache_write_mb_per_second": round(
                page_cache_mb_per_second(Path(inside) / "written", effort.writes)
            ),
        }


def loopback_echo_us(echoes: int) -> float:
    """A round trip of a few bytes over the loopback, between two processes that do nothing else."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        echo = multiprocessing.get_context("fork").Process(target=_echo, args=(server,), daemon=True)
        echo.start()
        with socket.create_connection(server.getsockname()) as client:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            taken = [_timed_us(lambda: _ask(client)) for _ in range(echoes)]
        echo.join()
    return median(taken)


def fdatasync_ms(path: Path, syncs: int) -> float:
    """A sync of a file that has just grown by a record's size."""
    taken = []
    with path.open("wb", buffering=0) as file:
        for _ in range(syncs):
            file.write(bytes(SYNCED_BYTES))
            taken.append(_timed_us(lambda: os.fdatasync(file.fileno())) / 1000)
    return median(taken)


def page_cache_mb_per_second(path: Path, writes: int) -> float:
    """Writes of a large batch's size to the end of a file that is never synced."""
    piece = bytes(WRITE_BYTES)
    with path.open("wb", buffering=0) as file:
        taken = [_timed_us(lambda: file.write(piece)) for _ in range(writes)]
    return WRITE_BYTES / median(taken)


def _ask(client: socket.socket) -> None:
    client.sendall(bytes(ECHO_BYTES))
    received = 0
    while received < ECHO_BYTES:
        received += len(client.recv(ECHO_BYTES))


def _echo(server: socket.socket) -> None:
    connection, _ = server.accept()
    with connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while data := connection.recv(ECHO_BYTES):
            connection.sendall(data)


def _timed_us(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return (time.perf_counter() - started) * 1e6
