"""`python -m kavka_broker` is the command `kavka-broker`."""

import sys
from collections.abc import Sequence
from typing import Final

INTERRUPTED: Final = 130
"""The exit code of a process that Ctrl-C ended before it had started, as a shell gives it."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command and exit with its code; Ctrl-C ends it without a traceback, also while it imports."""
    try:
        from kavka_broker.cli import main as run

        run(arguments)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()
