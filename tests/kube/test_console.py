"""The operator's page at an address that others reach: a real API server says what each token may list."""

import json
import os
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.kube import forks
from tests.kube.cluster import Kubernetes
from tests.kube.objects import cluster, topic
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
