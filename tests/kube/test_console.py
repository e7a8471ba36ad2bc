"""The operator's page: a real API server says what each token may list, and into which cluster it may look."""

import json
import os
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
import yaml
from confluent_kafka import Producer

from kavka_operator.process.console.events import STREAMS_OF_ONE_MAX
from kavka_pytest.in_process import KafkaInProcess
from tests.kube import forks
from tests.kube.cluster import Kubernetes
from tests.kube.helm import of_kind, rendered
from tests.kube.objects import cluster, external, topic
from tests.support.control_plane import TOKEN, ControlPlane
from tests.support.servers import free_port
from tests.support.waiting import until_outside

SECONDS_MAX = 60.0
NOWHERE = "127.0.0.1:1"


@pytest.fixture
def places(kubernetes: Kubernetes, plane: ControlPlane) -> Iterator[tuple[Kubernetes, Kubernetes]]:
    """Two namespaces, each with a topic that is named like it."""
    with closing(plane.api()) as api:
        other = Kubernetes(plane, api, f"{kubernetes.namespace}-other")
        other.begin()
        for place in (kubernetes, other):
            assert place.create(cluster("main")).is_well
            assert place.create(topic(f"topic-{place.namespace}")).is_well
        yield kubernetes, other
        other.end()


@pytest.fixture
def address(places: tuple[Kubernetes, Kubernetes], tmp_path: Path) -> Iterator[str]:
    """The page of an operator that watches both."""
    port = free_port()
    settings = {
        **os.environ,
        "KUBECONFIG": str(places[0].plane.kubeconfig),
        "KAVKA_WATCH_NAMESPACES": ",".join(place.namespace for place in places),
        "KAVKA_CONSOLE": f"0.0.0.0:{port}",
    }
    running = forks.start([NOWHERE], settings, tmp_path / "operator.log")
    yield f"http://127.0.0.1:{port}"
    running.kill()
    running.wait(SECONDS_MAX)


def token_of(place: Kubernetes, name: str) -> str:
    """A token of a new service account without rights."""
    place.shows("create", "serviceaccount", name)
    return place.shows("create", "token", name).strip()


def may_list(place: Kubernetes, account: str, *resources: str) -> None:
    """Let a service account list resources in its namespace."""
    place.shows("create", "role", account, "--verb=list", f"--resource={','.join(resources)}")
    place.shows("create", "rolebinding", account, f"--role={account}", f"--serviceaccount={place.namespace}:{account}")


def shown(address: str, token: str = "") -> tuple[int, set[str]]:
    """The code of the answer, and the names of clusters and topics in it."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        request = urllib.request.Request(f"{address}/console.json", headers=headers)
        with urllib.request.urlopen(request, timeout=SECONDS_MAX) as answer:
            found = json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, set()
    except OSError:
        return 0, set()
    rows = [*found["clusters"], *found["topics"]]
    return 200, {f"{row['namespace']}/{row['name']}" for row in rows}


def test_each_token_sees_what_the_api_server_lets_it_list(address: str, places: tuple[Kubernetes, Kubernetes]) -> None:
    first, second = places
    names = {
        place.namespace: {f"{place.namespace}/main", f"{place.namespace}/topic-{place.namespace}"} for place in places
    }
    until_outside(
        lambda: shown(address, TOKEN) == (200, names[first.namespace] | names[second.namespace]), SECONDS_MAX, "listed"
    )
    assert shown(address)[0] == 401
    assert shown(address, "forged")[0] == 401
    reader, guest = token_of(first, "reader"), token_of(first, "guest")
    may_list(first, "reader", "kafkaclusters.kavka.dev", "topics.kavka.dev")
    assert shown(address, guest) == (403, set())
    until_outside(lambda: shown(address, reader)[0] == 200, SECONDS_MAX, "the role holds")
    assert shown(address, reader) == (200, names[first.namespace]), "of the other namespace nothing"
    only_topics = token_of(second, "topics")
    may_list(second, "topics", "topics.kavka.dev")
    topics = {f"{second.namespace}/topic-{second.namespace}"}
    until_outside(lambda: shown(address, only_topics) == (200, topics), SECONDS_MAX, "the role holds")


def test_tokens_of_one_service_account_are_one_visitor(kubernetes: Kubernetes, address: str) -> None:
    first, other = token_of(kubernetes, "reader"), token_of(kubernetes, "other")
    second = kubernetes.shows("create", "token", "reader").strip()
    for account in ("reader", "other"):
        may_list(kubernetes, account, "topics.kavka.dev")
    tokens = (first, second, other)
    until_outside(lambda: [shown(address, token)[0] for token in tokens] == [200] * 3, SECONDS_MAX, "the roles hold")
    with ExitStack() as pages:
        for _ in range(STREAMS_OF_ONE_MAX):
            request = urllib.request.Request(f"{address}/events", headers={"Authorization": f"Bearer {first}"})
            pages.enter_context(urllib.request.urlopen(request, timeout=SECONDS_MAX))
        assert first != second
        assert [asked(address, "/events", token)[0] for token in tokens] == [503, 503, 200]


@pytest.fixture
def kafka(tmp_path: Path) -> Iterator[KafkaInProcess]:
    """A broker with a record."""
    with KafkaInProcess(tmp_path / "kafka") as running:
        producer = Producer({"bootstrap.servers": str(running)})
        producer.produce(running.topic("orders"), b"salary: 7", b"k")
        assert producer.flush(SECONDS_MAX) == 0
        yield running


@pytest.fixture
def forwarded(kubernetes: Kubernetes, kafka: KafkaInProcess, tmp_path: Path) -> Iterator[str]:
    """The page at an address of the pod, of an operator that looks after the broker."""
    assert kubernetes.create(external(bootstrapServers=str(kafka))).is_well
    port = free_port()
    settings = {
        **os.environ,
        "KUBECONFIG": str(kubernetes.plane.kubeconfig),
        "KAVKA_WATCH_NAMESPACES": kubernetes.namespace,
        "KAVKA_CONSOLE": f"127.0.0.1:{port}",
    }
    running = forks.start([NOWHERE], settings, tmp_path / "operator.log")
    yield f"http://127.0.0.1:{port}"
    running.kill()
    running.wait(SECONDS_MAX)


def asked(address: str, path: str, token: str = "", **fields: str) -> tuple[int, str]:
    """The code of the answer, and its first event or all of it."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    request = urllib.request.Request(f"{address}{path}?{urllib.parse.urlencode(fields)}", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=SECONDS_MAX) as answer:
            return answer.status, str((answer.readline() if path == "/events" else answer.read()).decode())
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError as error:
        return 0, str(error)


def test_records_are_shown_to_a_token_that_may_get_them_of_that_cluster(kubernetes: Kubernetes, forwarded: str) -> None:
    (role,) = [
        found for found in of_kind(rendered(), "ClusterRole") if found["metadata"]["name"] == "kavka-kavka-console"
    ]
    kubernetes.shows("apply", "--filename", "-", stdin=yaml.safe_dump(role))
    tokens = {name: token_of(kubernetes, name) for name in ("reader", "lister", "elsewhere", "groups")}
    kubernetes.shows(
        "create", "rolebinding", "reader", "--clusterrole=kavka-kavka-console",
        f"--serviceaccount={kubernetes.namespace}:reader",
    )  # fmt: skip
    may_list(kubernetes, "lister", "kafkaclusters.kavka.dev", "topics.kavka.dev", "clientquotas.kavka.dev")
    for account, right in (
        ("elsewhere", ("--resource=kafkaclusters.kavka.dev/records", "--resource-name=other")),
        ("groups", ("--resource=kafkaclusters.kavka.dev/groups", "--resource-name=main")),
    ):
        kubernetes.shows("create", "role", account, "--verb=get", *right)
        by = (f"--role={account}", f"--serviceaccount={kubernetes.namespace}:{account}")
        kubernetes.shows("create", "rolebinding", account, *by)
    place = {"cluster": f"{kubernetes.namespace}/main"}
    search = {**place, "topic": "orders", "at": "oldest"}
    until_outside(
        lambda: asked(forwarded, "/records", tokens["reader"], **search)[0] == 200, SECONDS_MAX, "records are read"
    )
    (record,) = json.loads(asked(forwarded, "/records", tokens["reader"], **search)[1])["records"]
    assert (record["key"], record["value"]) == ("k", "salary: 7")
    for view in ("records", "groups", "clients"):
        assert asked(forwarded, "/events", tokens["reader"], **place, view=view)[0] == 200
    assert asked(forwarded, "/access", tokens["reader"], **place)[0] == 200
    for token, code in (("", 401), ("forged", 401), *((tokens[name], 403) for name in tokens if name != "reader")):
        for path, fields in (("/records", search), ("/access", place), ("/events", {**place, "view": "clients"})):
            found = asked(forwarded, path, token, **fields)
            assert (found[0], "salary" in found[1]) == (code, False)
    assert asked(forwarded, "/events", tokens["groups"], **place, view="groups")[0] == 200
    assert asked(forwarded, "/console.json")[0] == 200, "what resources say is shown to who may forward the port"
