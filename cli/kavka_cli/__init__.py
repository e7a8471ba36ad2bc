"""The `kavka` command. Modules of the commands are imported when one of them runs, so that `--help` is quick."""

import sys
from collections.abc import Sequence
from io import TextIOWrapper

INTERRUPTED = 130
"""The exit code of a command that Ctrl-C has ended, as a shell gives it."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command and exit with its code; Ctrl-C ends it without a traceback, also while it imports."""
    try:
        from kavka_cli.app import main as run

        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, TextIOWrapper):  # clients choose names with letters that not every terminal has
                stream.reconfigure(errors="backslashreplace")
        run(arguments)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
