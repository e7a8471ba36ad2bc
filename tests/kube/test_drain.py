"""`kubectl drain` of one machine after the other, on a real API server: each broker moves, and no record is lost.

The tests stand in the place of scheduler and kubelets. A pod that has a machine is the process of a real broker; one
that is to end is stopped as a kubelet stops it, and comes back where there is room.
"""

import subprocess
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.conformance.cluster.history import History, create_topic
from tests.kube.cluster import Kubernetes
from tests.kube.test_operator import Operated
from tests.kube.test_pods import MERGE, RUNS, begun, of_pods
from tests.support.control_plane import Api, Json
from tests.support.drawn import in_turn
from tests.support.nodes import Nodes, Place, cluster
from tools.kube.programs import program

DRAIN_SECONDS_MAX = 120
POLL_SECONDS = 0.2
READY = {**RUNS, "conditions": [{"type": "Ready", "status": "True"}]}


@dataclass(slots=True)
class Machines:
    """Machines that run the pods of one namespace, each a broker of `nodes`."""

    kubernetes: Kubernetes
    nodes: Nodes
    names: tuple[str, ...]
    running: dict[int, str] = field(default_factory=dict)  # the uids of the pods whose processes run
    is_over: threading.Event = field(default_factory=threading.Event)
    thread: threading.Thread = field(init=False)

    def __post_init__(self) -> None:
        for name in self.names:
            assert self.kubernetes.api.call("POST", "/api/v1/nodes", {"metadata": {"name": name}}).is_well
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def end(self) -> None:
        self.is_over.set()
        self.thread.join(DRAIN_SECONDS_MAX)
        for name in self.names:
            self.kubernetes.api.call("DELETE", f"/api/v1/nodes/{name}")

    def run(self) -> None:
        """Do what scheduler and kubelets do, until all is over."""
        with closing(self.kubernetes.plane.api()) as api:
            while not self.is_over.wait(POLL_SECONDS):
                for pod in api.call("GET", self.path()).body["items"]:
                    self.look_after(api, pod)

    def path(self, pod: str = "", part: str = "") -> str:
        place = f"/api/v1/namespaces/{self.kubernetes.namespace}/pods"
        return "/".join(word for word in (place, pod, part) if word)

    def look_after(self, api: Api, pod: Json) -> None:
        """Place a pod, start its broker, or end it."""
        name, number = pod["metadata"]["name"], int(pod["metadata"]["labels"]["kavka.dev/node-id"])
        if "deletionTimestamp" in pod["metadata"]:
            self.nodes[number].stop()
            api.call("DELETE", self.path(name), {"gracePeriodSeconds": 0})
        elif "nodeName" not in pod["spec"]:
            self.place(api, name)
        elif self.running.get(number) != pod["metadata"]["uid"]:
            self.launch(number)
            self.running[number] = pod["metadata"]["uid"]
        elif pod["status"].get("phase") != "Running" and self.serves(number):
            api.call("PATCH", self.path(name, "status"), {"status": READY}, content=MERGE)

    def launch(self, number: int) -> None:
        """Start the process of a pod that has a machine."""
        self.nodes[number].launch()

    def serves(self, number: int) -> bool:
        """Whether the process of a pod has started."""
        return self.nodes[number].serves()

    def place(self, api: Api, name: str) -> None:
        """Bind a pod to the machine that has the fewest, of those that take any."""
        there = {item["metadata"]["name"]: item["spec"] for item in api.call("GET", "/api/v1/nodes").body["items"]}
        free = [machine for machine in self.names if not there[machine].get("unschedulable")]
        full = Counter(place for place in self.places(api).values())
        if free:
            target = {"kind": "Node", "name": min(free, key=lambda machine: full[machine])}
            api.call("POST", self.path(name, "binding"), {"metadata": {"name": name}, "target": target})

    def places(self, api: Api) -> dict[str, str]:
        """The machine of each pod that has one."""
        items = api.call("GET", self.path()).body["items"]
        return {item["metadata"]["name"]: item["spec"]["nodeName"] for item in items if "nodeName" in item["spec"]}


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Nodes]:
    """Three brokers that are controllers too, none of them started yet."""
    places = [Place(number, rack=f"rack-{number}") for number in range(3)]
    with cluster(tmp_path / "nodes", places, started=False) as made:
        yield made


@pytest.fixture
def machines(kubernetes: Kubernetes, nodes: Nodes) -> Iterator[Machines]:
    """Four machines."""
    made = Machines(kubernetes, nodes, tuple(f"{kubernetes.namespace}-{letter}" for letter in "abcd"))
    yield made
    made.end()


@pytest.fixture
def operated(kubernetes: Kubernetes, nodes: Nodes, tmp_path: Path) -> Iterator[Operated]:
    """An operator that sees which machines are cordoned, and has no pods yet."""
    scene = Operated(kubernetes, nodes, tmp_path / "operator.log")
    scene.start(KAVKA_SEE_MACHINES="true")
    yield scene
    scene.stop()


@dataclass(slots=True)
class Producing:
    """A producer that goes on until it is ended."""

    history: History
    is_over: threading.Event = field(default_factory=threading.Event)
    thread: threading.Thread = field(init=False)

    def __post_init__(self) -> None:
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self) -> None:
        while not self.is_over.is_set():
            self.history.produce(POLL_SECONDS)

    def has_lost_nothing(self) -> None:
        self.is_over.set()
        self.thread.join(DRAIN_SECONDS_MAX)
        self.history.finish()
        self.history.check()


def uids(scene: Operated, machines: Machines) -> dict[str, str]:
    items = scene.kubernetes.api.call("GET", machines.path()).body["items"]
    return {item["metadata"]["name"]: item["metadata"]["uid"] for item in items}


def drain(scene: Operated, name: str) -> None:
    """Empty a machine as a person does; an AssertionError where it does not end well."""
    plane = scene.kubernetes.plane
    line = [str(program("kubectl")), "--kubeconfig", str(plane.kubeconfig), "drain", name, "--delete-emptydir-data"]
    line += ["--pod-selector", "kavka.dev/cluster=pods", f"--timeout={DRAIN_SECONDS_MAX}s"]
    drained = subprocess.run(line, capture_output=True, text=True, check=False, timeout=2 * DRAIN_SECONDS_MAX)
    assert drained.returncode == 0, drained.stdout + drained.stderr


def test_each_machine_is_drained_in_turn_and_no_record_is_lost(operated: Operated, machines: Machines) -> None:
    api, ready = operated.kubernetes.api, ("KafkaCluster", "pods")
    begun(operated, of_pods(3), pods=3)
    operated.until_ready(ready)
    create_topic(machines.nodes)
    producing = Producing(History(machines.nodes))
    moved: Counter[str] = Counter()
    for name in machines.names:
        before, there = uids(operated, machines), machines.places(api)
        drain(operated, name)
        operated.kubernetes.shows("uncordon", name)
        leaving = {pod for pod, machine in there.items() if machine == name}
        operated.until(lambda there=there: there.keys() == machines.places(api).keys())  # type: ignore[misc]
        operated.until_ready(ready)
        after = uids(operated, machines)
        assert {pod for pod in after if after[pod] != before[pod]} == leaving, "the brokers of other machines stay"
        moved.update(leaving)
    assert moved.keys() == uids(operated, machines).keys(), "each broker was evicted"
    producing.has_lost_nothing()


@pytest.mark.parametrize("staying", in_turn([1, 2], 2))
def test_two_machines_are_drained_at_once_and_no_record_is_lost(
    operated: Operated, machines: Machines, staying: int
) -> None:
    """Both brokers go, the second when the first has come back on a machine that stays."""
    api, ready = operated.kubernetes.api, ("KafkaCluster", "pods")
    spare = machines.names[2 + staying :]
    if spare:
        operated.kubernetes.shows("cordon", *spare)
    begun(operated, of_pods(3), pods=3)
    operated.until_ready(ready)
    create_topic(machines.nodes)
    producing = Producing(History(machines.nodes))
    before, there = uids(operated, machines), machines.places(api)
    leaving = machines.names[:2]
    operated.kubernetes.shows("cordon", *leaving)  # what leaves one of them does not go to the other
    with ThreadPoolExecutor() as pool:
        for drained in [pool.submit(drain, operated, name) for name in leaving]:
            drained.result()
    operated.until(lambda: there.keys() == machines.places(api).keys())
    operated.until_ready(ready)
    assert not set(leaving) & set(machines.places(api).values())
    after = uids(operated, machines)
    assert {pod for pod in after if after[pod] != before[pod]} == {pod for pod in there if there[pod] in leaving}
    producing.has_lost_nothing()
