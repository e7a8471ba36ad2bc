"""A namespace with a KafkaCluster of pods, and a client in it that counts what it was told to be kept."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from e2e.images import TAG
from e2e.kubectl import SECONDS_MAX, apply, ask, until
from e2e.release import OPERATOR_IMAGE
from tests.kube.objects import cluster, pool, topic, volumes
from tests.support.control_plane import Json

CLIENT = (Path(__file__).parent / "client.py").read_text()
DATA = volumes({"name": "data", "size": "1Gi"})
NODES = pool("nodes", replicas=3, racks=["a", "b", "c"], storage=DATA)
OF_CLUSTER = ("--selector", "kavka.dev/cluster=main")


def client(name: str, *arguments: str, authority: str = "") -> Json:
    """A pod that runs the client; by TLS where the Secret of an authority is named."""
    image = f"{OPERATOR_IMAGE}:{TAG}"
    container: Json = {"name": "client", "image": image, "command": ["python", "-c", CLIENT, *arguments]}
    spec: Json = {"restartPolicy": "Never", "containers": [container], "terminationGracePeriodSeconds": 1}
    if authority:
        container["volumeMounts"] = [{"name": "ca", "mountPath": "/etc/ca"}]
        spec["volumes"] = [{"name": "ca", "secret": {"secretName": authority}}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


@dataclass(frozen=True, slots=True)
class Scene:
    """The cluster `main` in a namespace of its own."""

    namespace: str
    authority: str = ""
    """The Secret with who has signed the brokers' certificates, where clients speak TLS."""

    @property
    def bootstrap(self) -> str:
        """Where clients in pods begin."""
        return f"main-bootstrap.{self.namespace}.svc:9092"

    def ask(self, *arguments: str) -> str:
        """What kubectl says here."""
        return ask(*arguments, namespace=self.namespace)

    def wants(self, pool: Json = NODES, **spec: object) -> None:
        """Apply the KafkaCluster."""
        apply(cluster("main", nodePools=[pool], **spec), self.namespace)

    def make(self, found: Json) -> None:
        """Apply any object here."""
        apply(found, self.namespace)

    def status(self, kind: str = "kafkaclusters", name: str = "main") -> Json:
        """The status of a resource."""
        found: Json = self._read(kind, name).get("status", {})
        return found

    def words(self, condition: str) -> str:
        """The reason and the message of a condition of the cluster; empty where it has none that is true."""
        for found in self.status().get("conditions", ()):
            if found["type"] == condition and found["status"] == "True":
                return f"{found['reason']}: {found['message']}"
        return ""

    def is_ready(self, kind: str = "kafkaclusters", name: str = "main") -> bool:
        """Whether a resource as it stands now is ready, and no roll is left."""
        found = self._read(kind, name)
        status = found.get("status", {})
        conditions = {condition["type"]: condition["status"] for condition in status.get("conditions", ())}
        is_new = status.get("observedGeneration") == found["metadata"]["generation"]
        return is_new and conditions.get("Ready") == "True" and conditions.get("Reconciling", "False") == "False"

    def until_ready(self, kind: str = "kafkaclusters", name: str = "main") -> None:
        """Wait until a resource is ready."""
        until(lambda: self.is_ready(kind, name))

    def pods(self) -> dict[str, str]:
        """The uids of the brokers' pods that are not on their way out, by name."""
        listed = json.loads(self.ask("get", "pods", *OF_CLUSTER, "--output", "json"))["items"]
        there = [item["metadata"] for item in listed if "deletionTimestamp" not in item["metadata"]]
        return {metadata["name"]: metadata["uid"] for metadata in there}

    def phases(self) -> dict[str, str]:
        """The phases of the brokers' pods, by name."""
        listed = json.loads(self.ask("get", "pods", *OF_CLUSTER, "--output", "json"))["items"]
        return {item["metadata"]["name"]: item["status"].get("phase", "") for item in listed}

    def machines(self) -> list[str]:
        """The nodes of the Kubernetes that the brokers' pods are on."""
        listed = json.loads(self.ask("get", "pods", *OF_CLUSTER, "--output", "json"))["items"]
        return sorted({item["spec"]["nodeName"] for item in listed if item["spec"].get("nodeName")})

    def images(self) -> set[str]:
        """The images that the brokers run with."""
        words = "jsonpath={.items[*].spec.containers[0].image}"
        return set(self.ask("get", "pods", *OF_CLUSTER, "--output", words).split())

    def changed(self, before: Mapping[str, str]) -> set[str]:
        """The pods that are others than before."""
        return {name for name, uid in self.pods().items() if uid != before.get(name)}

    def produces(self, bootstrap: str = "") -> None:
        """Make the topic, and let a client produce to it until it is ended."""
        apply(topic("flights", partitions=3, replicationFactor=3, config={"min.insync.replicas": "2"}), self.namespace)
        self.until_ready("topics.kavka.dev", "flights")
        apply(client("producer", "produce", bootstrap or self.bootstrap, authority=self.authority), self.namespace)
        self.ask("wait", "--for=condition=Ready", "pod/producer", f"--timeout={SECONDS_MAX}s")
        until(lambda: self.acknowledged() > 0)

    def acknowledged(self) -> int:
        """How many records the client was told to be kept."""
        lines = self.ask("logs", "producer", "--tail", "1").split()
        return int(lines[-1]) if lines else 0

    def until_more(self) -> None:
        """Wait until the client goes on."""
        before = self.acknowledged()
        until(lambda: self.acknowledged() > before)

    def has_lost_nothing(self, bootstrap: str = "") -> None:
        """End the client, and read all back: every record is there once."""
        self.until_more()
        count = self.acknowledged()
        self.ask("delete", "pod", "producer", "--now")
        self.check(count, bootstrap=bootstrap)

    def check(self, count: int, name: str = "check", bootstrap: str = "") -> None:
        """Read all back: every record is there once."""
        asked = client(name, "check", bootstrap or self.bootstrap, str(count), authority=self.authority)
        apply(asked, self.namespace)
        self.ask("wait", "--for=jsonpath={.status.phase}=Succeeded", f"pod/{name}", f"--timeout={SECONDS_MAX}s")
        assert self.ask("logs", name).strip().endswith("0 lost, 0 twice")

    def _read(self, kind: str, name: str) -> Json:
        found: Json = json.loads(self.ask("get", kind, name, "--output", "json"))
        return found


@contextmanager
def scene_in(namespace: str) -> Iterator[Scene]:
    """An empty namespace, which goes with all that is in it."""
    ask("create", "namespace", namespace)
    try:
        yield Scene(namespace)
    finally:
        ask("delete", "namespace", namespace, f"--timeout={SECONDS_MAX}s")
