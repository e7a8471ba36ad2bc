"""Brokers get more memory while they run: kubelet changes their control groups, and no pod is made again."""

import json

from e2e.cluster_namespace import DATA, Scene
from e2e.kubectl import until
from tests.kube.objects import pool
from tests.support.control_plane import Json

MIB = 1 << 20
MEMORY = """
from pathlib import Path
found = [Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"), Path("/sys/fs/cgroup/memory.max")]
print(next(path.read_text() for path in found if path.exists()))
"""


def sized(memory: str, cpu: str = "100m") -> Json:
    """Three nodes that have so much each."""
    resources = {"requests": {"cpu": cpu, "memory": "200Mi"}, "limits": {"memory": memory}}
    return pool("nodes", replicas=3, racks=["a", "b", "c"], storage=DATA, resources=resources)


def limits(scene: Scene) -> list[int]:
    """The bytes of memory that the machine lets each broker have, as its own control group tells it."""
    return [int(scene.ask("exec", pod, "--container", "broker", "--", "python", "-c", MEMORY)) for pod in scene.pods()]


def restarts(scene: Scene) -> list[int]:
    words = "jsonpath={.items[*].status.containerStatuses[0].restartCount}"
    return [
        int(count)
        for count in scene.ask("get", "pods", "--selector", "kavka.dev/cluster=main", "--output", words).split()
    ]


def test_memory_and_processor_change_and_no_broker_is_restarted(scene: Scene) -> None:
    scene.wants(sized("400Mi"), rollout={"hold": True})
    scene.until_ready()
    assert limits(scene) == [400 * MIB] * 3
    scene.produces()
    before = scene.pods()
    scene.wants(sized("600Mi", cpu="150m"), rollout={"hold": True})
    until(lambda: limits(scene) == [600 * MIB] * 3)
    scene.until_ready()
    assert scene.pods() == before
    assert restarts(scene) == [0, 0, 0]
    templates = json.loads(scene.ask("get", "statefulsets", "--output", "json"))["items"]
    asked = {found["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]["memory"] for found in templates}
    assert asked == {"600Mi"}, "the next pod has it too"
    scene.has_lost_nothing()


def test_what_no_machine_has_is_told_and_taken_back_without_a_restart(scene: Scene) -> None:
    scene.wants(sized("400Mi"))
    scene.until_ready()
    scene.produces()
    before = scene.pods()
    scene.wants(sized("400Mi", cpu="1000"))
    until(lambda: scene.words("Stalled").startswith("ResizeRefused") or "Deferred" in scene.words("Reconciling"))
    scene.until_more()
    scene.wants(sized("400Mi"))
    scene.until_ready()
    assert scene.pods() == before
    scene.has_lost_nothing()
