"""Prints results of commands to stdout, notes and errors to stderr."""

import sys

from kavka_operator.api.files import BadResourcesError


class CommandError(Exception):
    """The command cannot be carried out; the message is for the person who typed it."""


def say(text: str) -> None:
    """Print a line of the result."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def note(text: str) -> None:
    """Print a line that is no part of the result."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def complain(error: Exception) -> int:
    """Print an error, a line for each fault; the exit code."""
    if isinstance(error, BadResourcesError):
        for fault in error.faults:
            sys.stderr.write(f"error: {fault}\n")
        count = len(error.faults)
        sys.stderr.write(f"nothing was applied: {count} {'error' if count == 1 else 'errors'}\n")
    else:
        sys.stderr.write(f"error: {error}\n")
    sys.stderr.flush()
    return 1
