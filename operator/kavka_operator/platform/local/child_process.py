"""Runs a command that must not outlive the process that asked for it.

    python -I -S child_process.py PARENT COMMAND...

The kernel sends SIGTERM to this process when PARENT ends, even by `kill -9`; the request is kept across `exec`, so the
command itself is on the leash. It is a program of its own rather than a function that runs between fork and exec,
because Python code there can deadlock when the parent has threads. Where the kernel knows no such thing (macOS), the
command just runs.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main(parent: int, command: list[str]) -> None:
    """Put this process on the leash and become the command."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        sys.exit(1)  # it ended before the leash was on
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    os.execv(command[0], command)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
