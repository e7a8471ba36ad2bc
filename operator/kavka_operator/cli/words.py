"""What the commands say, and to whom: results to stdout, errors to stderr."""

import sys
from pathlib import Path

from kavka_operator.api.files import BadResourcesError
from kavka_operator.platform.local.files import Lock
from kavka_operator.platform.local.layout import Layout, clusters, default_state_directory


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


def state_directory(chosen: Path | None) -> Path:
    """The directory with all local clusters."""
    return (chosen or default_state_directory()).expanduser().absolute()


def is_running(layout: Layout) -> bool:
    """Whether a `kavka up` runs this cluster now."""
    return Lock(layout.lock).is_held_elsewhere()


def the_cluster(state: Path, namespace: str, name: str | None) -> Layout:
    """The cluster of this name, or the only one that runs. Raises CommandError."""
    known = [layout for layout in clusters(state) if layout.namespace == namespace]
    if name is not None:
        found = [layout for layout in known if layout.cluster == name]
        if not found:
            raise CommandError(f'there is no KafkaCluster "{name}" in namespace "{namespace}"' + _others(known))
        return found[0]
    running = [layout for layout in known if is_running(layout)]
    match running:
        case [only]:
            return only
        case []:
            raise CommandError(f'no cluster runs in namespace "{namespace}"; start one with `kavka up -f FILE`')
        case several:
            raise CommandError(f"several clusters run; name one of {', '.join(layout.cluster for layout in several)}")


def _others(known: list[Layout]) -> str:
    return f"; there are {', '.join(layout.cluster for layout in known)}" if known else ""
