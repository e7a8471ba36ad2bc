"""The operator's page for people, as docs/how-to/console.md opens it: by `kubectl port-forward`, and by its Service."""

import json
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from e2e.cluster import kubectl
from e2e.cluster_namespace import Scene
from e2e.images import TAG
from e2e.kubectl import tried, until
from e2e.release import DEPLOYMENT, OPERATOR, OPERATOR_IMAGE, OPERATORS, install
from tests.kube.objects import topic
from tests.support.control_plane import Json
from tests.support.servers import free_port

CONSOLE_PORT = 8081
SECONDS_MAX = 5.0
SERVICE = f"http://{DEPLOYMENT}-console.{OPERATORS}.svc:{CONSOLE_PORT}"
VISITOR = (Path(__file__).parent / "visitor.py").read_text()
SHOWN = "--resource=kafkaclusters.kavka.dev,topics.kavka.dev,clientquotas.kavka.dev"


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


def visitor(account: str, namespace: str) -> Json:
    """A pod that opens the topics of a cluster on the page by its Service with the token of its service account, and
    tells what it is sent.
    """
    line = ["python", "-uc", VISITOR, SERVICE, f"{namespace}/main"]
    container = {"name": "visitor", "image": f"{OPERATOR_IMAGE}:{TAG}", "command": line}
    spec = {
        "serviceAccountName": account, "restartPolicy": "Never", "containers": [container],
        "terminationGracePeriodSeconds": 1,
    }  # fmt: skip
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": account}, "spec": spec}


def said(scene: Scene, name: str) -> list[str]:
    """The lines of a pod; none while it does not run."""
    return tried("logs", name, namespace=scene.namespace).stdout.splitlines()


def test_by_its_service_it_shows_a_token_what_that_may_list_and_what_happens(loaded: Scene) -> None:
    install(console_host="0.0.0.0")
    for account in ("reader", "guest"):
        loaded.ask("create", "serviceaccount", account)
    loaded.ask("create", "role", "reader", "--verb=list", SHOWN)
    loaded.ask("create", "rolebinding", "reader", "--role=reader", f"--serviceaccount={loaded.namespace}:reader")
    for account in ("reader", "guest"):
        loaded.make(visitor(account, loaded.namespace))
    until(lambda: "page asks for a token: True" in said(loaded, "guest"))
    until(lambda: "without a token: 401" in said(loaded, "guest"))
    until(lambda: "with the token: 403" in said(loaded, "guest"))
    until(lambda: f"shown: {loaded.namespace}/flights" in said(loaded, "reader"))
    loaded.make(topic("later", partitions=1, replicationFactor=3))
    names = ", ".join(f"{loaded.namespace}/{name}" for name in ("flights", "later"))
    until(lambda: f"shown: {names}" in said(loaded, "reader"))
    loaded.ask("delete", "rolebinding", "reader")
    until(lambda: "the stream has ended" in said(loaded, "reader"))
    assert not any(line.startswith("shown") for line in said(loaded, "guest"))
    loaded.has_lost_nothing()
