"""Runs `kavka console` beside `kavka up`: a process of its own, so that a node is started again whatever a page asks,
which ends with the cluster.
"""

import os
import socket
import subprocess
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from secrets import token_urlsafe
from typing import Final

from kavka_cli.output import CommandError
from kavka_operator.optional_libraries import lacking
from kavka_operator.platform.local import probe, processes
from kavka_operator.platform.local.layout import Layout

HOST: Final = "127.0.0.1"
PORT: Final = 9699
PORT_MAX: Final = 65_535
KEY_VARIABLE: Final = "KAVKA_CONSOLE_KEY"
"""The environment variable that tells the console its key: other users see the words of a command."""
START_SECONDS_MAX: Final = 20.0
STOP_SECONDS_MAX: Final = 5.0
POLL_SECONDS: Final = 0.05


def add_console(parser: ArgumentParser) -> None:
    """Add `--console`."""
    words = f"Show the cluster in a browser too, on this port of 127.0.0.1 ({PORT}, or a free one where it is taken)."
    parser.add_argument("--console", nargs="?", type=int, const=0, metavar="PORT", help=words)


def console_address(
    options: Namespace, is_taken: Callable[[str, int], bool] = probe.port_is_taken
) -> "ConsoleAddress | None":
    """The address of the console; None where it is not asked for. `is_taken` tells of ports. Raises CommandError."""
    asked: int | None = options.console
    if asked is None:
        return None
    if lack := lacking("kavka up --console", "console", "kavka_top", "aiohttp"):
        raise CommandError(lack)
    if not 0 <= asked <= PORT_MAX:
        raise CommandError(f"--console: {asked} is not a port; they are from 1 to {PORT_MAX}")
    if asked and is_taken(HOST, asked):
        raise CommandError(f"--console: port {asked} of {HOST} is in use by another program; choose another one")
    return ConsoleAddress(asked or (_free_port() if is_taken(HOST, PORT) else PORT))


def _free_port() -> int:
    with socket.socket() as trial:
        trial.bind((HOST, 0))
        return int(trial.getsockname()[1])


@dataclass(frozen=True, slots=True)
class ConsoleAddress:
    """The port of a console, and the key that a browser must know."""

    port: int
    key: str = field(default_factory=lambda: os.environ.get(KEY_VARIABLE) or token_urlsafe(16))

    def __str__(self) -> str:
        return f"http://{HOST}:{self.port}/?key={self.key}"


class ConsoleProcess:
    """The console of a cluster that runs."""

    def __init__(self, layout: Layout, address: ConsoleAddress, tell: Callable[[str], None]) -> None:
        self._layout, self._address, self._tell = layout, address, tell
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> bool:
        """Start it and wait until its port answers; whether it does."""
        layout = self._layout
        state = layout.root.parent.parent
        words = ["console", layout.cluster, "--namespace", layout.namespace, "--state-dir", str(state)]
        line: Sequence[str] = (sys.executable, "-m", "kavka_cli", *words, "--port", str(self._address.port))
        log = layout.supervisor_log.with_name("console.log")
        os.environ[KEY_VARIABLE] = self._address.key  # which its child has too
        self._process = processes.start(line, log)
        deadline = time.monotonic() + START_SECONDS_MAX
        while self._process.poll() is None and time.monotonic() < deadline:
            with suppress(OSError), socket.create_connection((HOST, self._address.port), 1.0):
                return True
            time.sleep(POLL_SECONDS)
        self._tell(f"the console has not started; see {log}")
        return False

    def stop(self) -> None:
        """End it."""
        if self._process is not None:
            processes.stop_children([self._process], STOP_SECONDS_MAX)
