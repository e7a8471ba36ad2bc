"""The operator's page for people, as docs/how-to/console.md opens it: by `kubectl port-forward`, and by its Service."""

import json
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from e2e.cluster import kubectl
from e2e.cluster_namespace import Scene, client
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
EVENTS = "/events"
ROLE = f"{OPERATORS}-{DEPLOYMENT}-console"
PLACES: dict[str, tuple[str, dict[str, str], str]] = {
    "records": ("/records", {"topic": "flights", "at": "oldest"}, '"value": "0"'),
    "groups": (EVENTS, {"view": "groups"}, "readers"),
    "clients": (EVENTS, {"view": "clients"}, "kafka-python"),
    "users": ("/access", {}, "Authorizer"),
}
"""By the right that shows it: where the page asks, what for, and a word of the answer."""
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


def asked(address: str, place: tuple[str, dict[str, str]], token: str) -> tuple[int, str]:
    """The code of the answer at a place of the page with a token, and its first event, or all of it where it is no
    stream; 0 while nothing answers.
    """
    path, fields = place
    request = urllib.request.Request(f"{address}{path}?{urllib.parse.urlencode(fields)}")
    request.add_header("Authorization", f"Bearer {token}")
    try:
        with urllib.request.urlopen(request, timeout=2 * SECONDS_MAX) as answer:
            if path != EVENTS:
                return answer.status, str(answer.read().decode())
            lines = (line.decode() for line in answer)
            return answer.status, next(line for line in lines if line.startswith("data: "))
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except (OSError, StopIteration) as error:
        return 0, str(error)


def is_shown(address: str, place: tuple[str, dict[str, str]], token: str, words: str) -> bool:
    """Whether a place is shown, with these words in it."""
    code, text = asked(address, place, token)
    return code == 200 and words in text


def token_of(scene: Scene, account: str, *rights: str) -> str:
    """The token of a new service account, which may get these subresources of KafkaClusters; all by the chart's role
    where one is `*`.
    """
    scene.ask("create", "serviceaccount", account)
    if rights:
        resources = ",".join(f"kafkaclusters.kavka.dev/{right}" for right in rights)
        role = (f"--clusterrole={ROLE}",) if rights == ("*",) else (f"--role={account}",)
        if rights != ("*",):
            scene.ask("create", "role", account, "--verb=get", f"--resource={resources}")
        scene.ask("create", "rolebinding", account, *role, f"--serviceaccount={scene.namespace}:{account}")
    return scene.ask("create", "token", account).strip()


def test_each_place_of_a_cluster_is_shown_to_a_token_with_its_right_alone(loaded: Scene) -> None:
    loaded.make(client("committer", "commit", loaded.bootstrap))
    loaded.ask("wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/committer", "--timeout=120s")
    tokens = {right: token_of(loaded, right, right) for right in PLACES}
    tokens |= {"reader": token_of(loaded, "reader", "*"), "guest": token_of(loaded, "guest")}
    of_cluster = {"cluster": f"{loaded.namespace}/main"}
    with forwarded() as address:
        until(lambda: "flights" in fetched(f"{address}/console.json"))
        for right, (path, fields, words) in PLACES.items():
            place = path, {**of_cluster, **fields}
            for name in (right, "reader"):
                until(partial(is_shown, address, place, tokens[name], words))
            for name in tokens.keys() - {right, "reader"}:
                code, text = asked(address, place, tokens[name])
                assert (name, right, code, words in text) == (name, right, 403, False)
        assert asked(address, ("/records", {**of_cluster, "topic": "flights"}), "forged")[0] == 401
    loaded.has_lost_nothing()


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
