"""The operator's page for people, as docs/how-to/console.md opens it: by `kubectl port-forward`."""

import json
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

from e2e.cluster import kubectl
from e2e.cluster_namespace import Scene
from e2e.kubectl import until
from e2e.release import OPERATOR, OPERATORS
from tests.support.servers import free_port

CONSOLE_PORT = 8081
SECONDS_MAX = 5.0


@contextmanager
def forwarded() -> Iterator[str]:
    """The address of the page on this machine."""
    port = free_port()
    line = [*kubectl(), "--namespace", OPERATORS, "port-forward", OPERATOR, f"{port}:{CONSOLE_PORT}"]
    process = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


def fetched(address: str) -> str:
    """A page; empty while nothing answers."""
    try:
        with urllib.request.urlopen(address, timeout=SECONDS_MAX) as answer:
            found: str = answer.read().decode()
            return found
    except OSError:
        return ""


def test_the_page_is_reached_by_port_forward_and_shows_the_cluster(loaded: Scene) -> None:
    with forwarded() as address:
        until(lambda: "<html" in fetched(f"{address}/"))
        until(lambda: "flights" in fetched(f"{address}/console.json"))
        (found,) = [
            each for each in json.loads(fetched(f"{address}/console.json"))["clusters"] if each["name"] == "main"
        ]
    assert found["namespace"] == loaded.namespace
