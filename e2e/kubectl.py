"""What tests ask of the API server, by kubectl as a person does."""

import json
import subprocess
import time
from collections.abc import Callable

from e2e.cluster import kubectl
from tests.support.control_plane import Json

SECONDS_MAX = 300
POLL_SECONDS = 0.5
"""Each question starts a kubectl, and the node shares the processors with it."""


def tried(*arguments: str, namespace: str = "default", stdin: str = "") -> "subprocess.CompletedProcess[str]":
    """Run kubectl, and answer what came of it."""
    line = [*kubectl(), "--namespace", namespace, *arguments]
    return subprocess.run(line, input=stdin, capture_output=True, text=True, check=False, timeout=2 * SECONDS_MAX)


def ask(*arguments: str, namespace: str = "default", stdin: str = "") -> str:
    """What kubectl says."""
    ran = tried(*arguments, namespace=namespace, stdin=stdin)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def apply(resource: Json, namespace: str) -> None:
    """Apply one resource."""
    ask("apply", "--filename", "-", stdin=json.dumps(resource), namespace=namespace)


def until(holds: Callable[[], object], seconds_max: float = SECONDS_MAX) -> None:
    """Wait until something holds. An AssertionError where it never does."""
    deadline = time.monotonic() + seconds_max
    while not holds():
        assert time.monotonic() < deadline, f"it did not come true in {seconds_max:g} s"
        time.sleep(POLL_SECONDS)
