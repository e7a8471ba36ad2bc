"""The processes of a local cluster's nodes: started as `kavka_broker run`, known again by pid and command line."""

import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from kavka_operator.platform.local import processes
from kavka_operator.platform.local.files import read_text, write_whole
from kavka_operator.platform.local.layout import Layout

STOP_SECONDS_MAX = 30.0
BROKER = (sys.executable, "-m", "kavka_broker")


def broker_command(*words: str) -> list[str]:
    """The command that calls the broker with these words."""
    return [*BROKER, *words]


@dataclass(frozen=True, slots=True)
class NodeProcesses:
    """Starts the processes of one cluster's nodes, and ends those that an earlier supervisor left behind."""

    layout: Layout

    def start(self, number: int) -> subprocess.Popen[bytes]:
        """Start a node. The caller holds signals until the process is noted, so that none is forgotten."""
        process = processes.start(
            broker_command("run", "--config", str(self.layout.properties(number))), self.layout.log(number)
        )
        with suppress(OSError):  # no room: the kernel ends it with this process all the same
            write_whole(self.layout.pid(number), f"{process.pid}\n")
        return process

    def stop_orphans(self, tell: Callable[[str], None]) -> None:
        """End nodes that an earlier supervisor left behind; `tell` gets a line for each."""
        for number, pid_file in self.layout.pids():
            pid = (read_text(pid_file) or "").strip()
            marks = ["kavka_broker", "run", str(self.layout.properties(number))]
            if pid.isdecimal() and processes.stop_known(int(pid), marks, STOP_SECONDS_MAX):
                tell(f"stopped node {number} (pid {pid}), which an earlier run had left behind")
            pid_file.unlink(missing_ok=True)
