"""The operator may die after any of its writes while it makes and rolls a cluster of pods: the next one goes on.

A scenario is played whole: three nodes are made, and then rolled by a change of settings. It is played again with
deaths: the operator dies right after its k-th write, another takes its place, and the end must be the same. Each
broker is restarted once and no more, and at no time is more than one away. N writes make N such plays, of which a
run draws one for each kind of write, by the seed of its tests' order, and a commit plays half of these: all would take
minutes.

No kubelet runs here. The tests say of a pod that it is ready, three real brokers answer for all, and the
StatefulSet controller of Kubernetes makes the pods anew.
"""

import json
import random
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.kube.cluster import Kubernetes
from tests.kube.test_drain import POLL_SECONDS, READY
from tests.kube.test_operator import Operated, reach
from tests.kube.test_pods import MERGE, names, of_pods, place
from tests.support.control_plane import Api, ControlPlane, Json
from tests.support.drawn import in_turn
from tests.support.nodes import Nodes, Place, cluster

NODES = 3
RESTARTS = 2
"""The pods that each node has had at the end: of its making, and of the one roll."""
PLAYS_PER_KIND = 1
PARTS = 2  # of the plays a commit has one
AT_ONCE = 3
KINDS = ("statefulsets", "persistentvolumeclaims", "services", "networkpolicies", "poddisruptionbudgets", "secrets")
CLUSTER = ("KafkaCluster", "pods")
DRAWN = ("kavka.dev/directory-id", "kavka.dev/cluster-id")
"""Annotations whose values are drawn: a cluster made again has others."""


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    """Three brokers that run all the time."""
    places = [Place(number, rack=f"rack-{number}") for number in range(NODES)]
    with cluster(tmp_path_factory.mktemp("nodes"), places) as made:
        yield made


@dataclass(slots=True)
class Kubelets:
    """Says of each pod that it is ready, ends those that are to end, and remembers which there were."""

    kubernetes: Kubernetes
    had: dict[str, dict[str, None]] = field(default_factory=dict)  # the uids of each pod, in their order
    fewest: int = NODES
    is_over: threading.Event = field(default_factory=threading.Event)
    thread: threading.Thread = field(init=False)

    def __post_init__(self) -> None:
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def end(self) -> None:
        self.is_over.set()
        self.thread.join()

    def run(self) -> None:
        """Do what kubelets do, until all is over."""
        path = f"/api/v1/namespaces/{self.kubernetes.namespace}/pods"
        with closing(self.kubernetes.plane.api()) as api:
            while not self.is_over.wait(POLL_SECONDS):
                pods = api.call("GET", path).body["items"]
                if len(self.had) == NODES:  # all have run, at the last look
                    self.fewest = min(self.fewest, sum(map(runs, pods)))
                for pod in pods:
                    self.look_after(api, f"{path}/{pod['metadata']['name']}", pod)

    def look_after(self, api: Api, path: str, pod: Json) -> None:
        """Let a pod be ready, or end it."""
        about = pod["metadata"]
        if "deletionTimestamp" in about:
            api.call("DELETE", path, {"gracePeriodSeconds": 0})
        elif not runs(pod) and api.call("PATCH", f"{path}/status", {"status": READY}, content=MERGE).is_well:
            self.had.setdefault(about["name"], {})[about["uid"]] = None


def runs(pod: Json) -> bool:
    """Whether the pod runs, and has not been told to end."""
    return pod["status"].get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]


@dataclass(frozen=True, slots=True)
class Played:
    """What a play wrote, and what was there at its end."""

    writes: list[str]
    end: dict[str, str]


def played(plane: ControlPlane, nodes: Nodes, directory: Path, name: str, last: int | None = None) -> Played:
    """Make the cluster and roll it, in a namespace of its own; with `last` the operator dies after so many writes."""
    with closing(plane.api()) as api:
        kubernetes = Kubernetes(plane, api, name)
        kubernetes.begin()
        kubelets = Kubelets(kubernetes)
        scene = Operated(kubernetes, nodes, directory / f"{name}.log")
        try:
            scene.start(last)
            made_and_rolled(scene, kubelets)
            return Played(scene.writes(), end_of(scene))
        finally:
            scene.stop()
            kubelets.end()
            kubernetes.end()


def made_and_rolled(scene: Operated, kubelets: Kubelets) -> None:
    """Apply the cluster, and then a change of it that restarts each broker; and each is restarted once."""
    assert scene.kubernetes.apply(of_pods(NODES)).is_well
    reach(scene, lambda: is_level(scene, 1))
    assert [len(uids) for uids in kubelets.had.values()] == [1] * NODES
    assert scene.kubernetes.apply(of_pods(NODES, config={"queued.max.requests": 400})).is_well
    reach(scene, lambda: is_level(scene, 2))
    assert {pod: len(uids) for pod, uids in kubelets.had.items()} == dict.fromkeys(kubelets.had, RESTARTS)
    assert kubelets.fewest >= NODES - 1, "two brokers were away at once"


def is_level(scene: Operated, generation: int) -> bool:
    """Whether all that the resource asks for is there, and the operator says so."""
    status = scene.status(*CLUSTER)
    return status.get("observedGeneration") == generation and scene.condition(*CLUSTER) == ("True", "Ready")


def end_of(scene: Operated) -> dict[str, str]:
    """The objects that the operator has made, by kind and name, and what it says; without what differs by chance."""
    found = {
        f"{kind}/{name}": scene.kubernetes.api.call("GET", place(scene, kind, name)).body
        for kind in KINDS
        for name in names(scene, kind)
    }
    chance = {scene.kubernetes.namespace} | {value for made in found.values() for value in by_chance(made)}
    made = {
        key: json.dumps([asked(one["metadata"]), one.get("spec"), sorted(one.get("data", ()))])
        for key, one in found.items()
    }
    conditions = scene.status(*CLUSTER)["conditions"]
    made["conditions"] = json.dumps(sorted((one["type"], one["status"], one["reason"]) for one in conditions))
    for value in chance:
        made = {key: text.replace(value, "(by chance)") for key, text in made.items()}
    return made


def by_chance(made: Json) -> Iterator[str]:
    """The values that an object was given by chance: its address, and the ids that the operator has drawn."""
    yield from made.get("spec", {}).get("clusterIPs", ())
    annotations = made["metadata"].get("annotations", {})
    yield from (annotations[key] for key in DRAWN if key in annotations)


def asked(metadata: Json) -> Json:
    """What the operator has put at the head of an object."""
    return {key: metadata.get(key, {}) for key in ("labels", "annotations")}


def drawn(writes: list[str]) -> list[int]:
    """The writes after which a play dies: some of each kind."""
    of_kind: dict[str, list[int]] = {}
    for number, words in enumerate(writes, 1):
        of_kind.setdefault(kind_of(words), []).append(number)
    chosen = (random.sample(numbers, min(PLAYS_PER_KIND, len(numbers))) for numbers in of_kind.values())
    return sorted(number for numbers in chosen for number in numbers)


def kind_of(words: str) -> str:
    """The kind of a write: what is left of its words without names of nodes."""
    return " ".join("#" if word.startswith("data-pods") else word.rstrip("0123456789-") for word in words.split())


@pytest.mark.parametrize("part", in_turn(range(PARTS), PARTS))
def test_it_may_die_after_any_write(plane: ControlPlane, nodes: Nodes, tmp_path: Path, part: int) -> None:
    whole = played(plane, nodes, tmp_path, f"dying-never-{part}")
    assert len(drawn(whole.writes)) > 5
    lasts = drawn(whole.writes)[part::PARTS]
    print(f"{len(whole.writes)} writes, of which each may be the last; here {lasts}")
    with ThreadPoolExecutor(AT_ONCE) as pool:
        ends = pool.map(lambda last: played(plane, nodes, tmp_path, f"dying-{part}-{last}", last).end, lasts)
        for last, end in zip(lasts, ends, strict=True):
            assert end == whole.end, f"it died after write {last}: {whole.writes[last - 1]}"
