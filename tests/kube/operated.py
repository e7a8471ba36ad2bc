"""The operator's own process over a namespace of its own, and a real broker: what tests say to both, and await."""

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from kafka.admin import KafkaAdminClient

from tests.kube.cluster import Kubernetes
from tests.kube.objects import cluster, pool, topic
from tests.support.control_plane import Json
from tests.support.servers import Server
from tests.support.waiting import until_outside

SECONDS_MAX = 60.0
CLUSTER = cluster("main", nodePools=[pool("nodes", replicas=1)])


@dataclass(slots=True)
class Operated:
    """A namespace, the broker behind it, and the operator that watches the one for the other."""

    kubernetes: Kubernetes
    broker: Server
    log: Path
    running: "subprocess.Popen[bytes] | None" = field(default=None)

    def start(self, last: int | None = None, **others: str) -> None:
        """Start the operator, with other settings; with `last` it dies after so many writes."""
        line = [sys.executable, "-m", "tests.kube.operating", self.broker.bootstrap, *([str(last)] if last else [])]
        settings = {
            **os.environ,
            "KUBECONFIG": str(self.kubernetes.plane.kubeconfig),
            "KAVKA_WATCH_NAMESPACES": self.kubernetes.namespace,
            **others,
        }
        with self.log.open("ab") as log:
            self.running = subprocess.Popen(line, env=settings, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def stop(self) -> None:
        """Kill the operator, wherever it is."""
        if self.running is not None:
            self.running.kill()
            self.running.wait(SECONDS_MAX)

    def writes(self) -> list[str]:
        """What the operator has written so far, in all of its lives."""
        lines = self.log.read_text(errors="replace").splitlines() if self.log.exists() else []
        return [line.partition(": ")[2] for line in lines if line.startswith("write ")]

    def status(self, kind: str, name: str) -> Json:
        """What is said of a resource."""
        found: Json = self.kubernetes.get(kind, name).get("status", {})
        return found

    def condition(self, kind: str, name: str, wanted: str = "Ready") -> tuple[str, str]:
        """Status and reason of a condition; empty where it is not there."""
        for condition in self.status(kind, name).get("conditions", []):
            if condition["type"] == wanted:
                return condition["status"], condition["reason"]
        return "", ""

    def until(self, holds: Callable[[], object]) -> None:
        """Wait for something to hold; a failure shows the operator's log."""
        try:
            until_outside(holds, SECONDS_MAX)
        except AssertionError as error:
            stands = self.kubernetes.kubectl("get", "kavka", "--output", "wide").stdout
            pytest.fail(f"{error}\n{stands}\n{self.log.read_text(errors='replace')[-4000:]}")

    def until_ready(self, *keys: tuple[str, str]) -> None:
        """Wait until resources are ready."""
        for key in keys:
            self.until(lambda key=key: self.condition(*key) == ("True", "Ready"))  # type: ignore[misc]

    def is_gone(self, kind: str, name: str) -> bool:
        """Whether the API server has no such resource."""
        return self.kubernetes.api.call("GET", self.kubernetes.path(kind, name)).status == 404

    def topics(self) -> set[str]:
        """The topics of the broker."""
        admin = KafkaAdminClient(bootstrap_servers=self.broker.bootstrap)
        try:
            return set(admin.list_topics())
        finally:
            admin.close()


def own_topic(scene: Operated, name: str, **spec: Any) -> Json:
    """A Topic whose topic is its test's own, as the broker serves all of them."""
    return topic(name, topicName=f"{scene.kubernetes.namespace}-{name}", **spec)
