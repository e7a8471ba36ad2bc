"""The command `kavka` against a real API server: by a kubeconfig, and as `kubectl kavka`."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kube.cluster import Kubernetes
from tests.kube.objects import cluster, quota, topic
from tests.support.control_plane import Json
from tools.kube.programs import program

COMMAND = Path(sys.executable).parent / "kubectl-kavka"
COMMAND_SECONDS_MAX = 60.0
PLAN = "0123456789ab"
MOMENT = "2026-11-23T05:00:00Z"
WAITING: Json = {
    "conditions": [
        {
            "type": "Ready",
            "status": "True",
            "reason": "Ready",
            "message": "3 nodes run",
            "lastTransitionTime": MOMENT,
        }
    ],
    "nodes": [{"id": number, "state": "Running"} for number in (0, 1, 2)],
    "rollout": {"plan": PLAN, "progress": "0/3", "done": 0, "total": 3, "atRisk": ["orders-0"]},
}


def kavka(kubernetes: Kubernetes, *words: str) -> tuple[int, str]:
    """Exit code of the command with the kubeconfig, and all that it says."""
    line = [str(COMMAND.with_name("kavka")), *words, "--kubeconfig", str(kubernetes.plane.kubeconfig)]
    ran = subprocess.run(
        [*line, "-n", kubernetes.namespace], capture_output=True, text=True, check=False, timeout=COMMAND_SECONDS_MAX
    )
    return ran.returncode, ran.stdout + ran.stderr


@pytest.fixture
def scene(kubernetes: Kubernetes) -> Kubernetes:
    """A namespace with a resource of each kind, and a roll that waits."""
    for made in (cluster("main"), topic("orders"), quota("etl")):
        assert kubernetes.create(made).is_well
    assert kubernetes.see("KafkaCluster", "main", WAITING).is_well
    return kubernetes


def annotations(kubernetes: Kubernetes) -> dict[str, str]:
    found: dict[str, str] = kubernetes.get("KafkaCluster", "main")["metadata"].get("annotations", {})
    return found


def test_get_and_describe_show_what_kubectl_shows(scene: Kubernetes) -> None:
    code, shown = kavka(scene, "get", "kvc,kvt")
    assert code == 0, shown
    assert [line.split()[0] for line in shown.splitlines() if line] == [
        "NAME",
        "main",
        "NODE",
        *"012",
        "NAME",
        "orders",
    ]
    assert "managedFields" not in kavka(scene, "get", "kvc", "main", "-o", "yaml")[1]
    described = kavka(scene, "describe", "kvq", "etl")[1]
    assert "kind: ClientQuota" in described
    assert "NotSeen" in described
    code, said = kavka(scene, "get", "kvt", "absent")
    assert (code, said) == (1, f'error: there is no Topic "absent" in namespace "{scene.namespace}"\n')
    assert scene.namespace in kavka(scene, "get", "kvt", "-A")[1]


def test_a_roll_is_approved_and_held_by_annotations_that_nobody_fights_over(scene: Kubernetes) -> None:
    code, said = kavka(scene, "approve", "main")
    assert (code, said.splitlines()) == (
        0,
        ["at risk while nodes restart: orders-0", f"kafkacluster.kavka.dev/main approved {PLAN}"],
    )
    assert kavka(scene, "hold", "--nodes", "1,2")[0] == 0
    assert annotations(scene) == {"kavka.dev/approve-rollout": PLAN, "kavka.dev/hold-nodes": "1,2"}
    assert kavka(scene, "hold", "--nodes", "7") == (1, "error: there is no node 7; there are 0, 1, 2\n")
    assert scene.apply(cluster("main")).is_well
    assert kavka(scene, "release", "--nodes", "2")[0] == 0
    assert annotations(scene) == {"kavka.dev/approve-rollout": PLAN, "kavka.dev/hold-nodes": "1"}
    assert kavka(scene, "release")[0] == 0
    assert annotations(scene) == {"kavka.dev/approve-rollout": PLAN}


def test_kubectl_runs_it_as_a_plugin(scene: Kubernetes) -> None:
    """kubectl hands its own options to no plugin; the file comes from the environment, as for kubectl itself."""
    environment = {
        **os.environ,
        "PATH": f"{COMMAND.parent}{os.pathsep}{os.environ['PATH']}",
        "KUBECONFIG": str(scene.plane.kubeconfig),
        "KAVKA_STATE_DIR": "nowhere",
    }
    line = [str(program("kubectl")), "kavka", "get", "kvt", "-n", scene.namespace]
    ran = subprocess.run(
        line, env=environment, capture_output=True, text=True, check=False, timeout=COMMAND_SECONDS_MAX
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.split()[0] == "NAME"
    assert "orders" in ran.stdout


def test_a_refusal_is_told_in_the_servers_words(kubernetes: Kubernetes, tmp_path: Path) -> None:
    path = tmp_path / "config"
    kubernetes.plane.write_kubeconfig(path, "a-token-of-nobody")
    line = [str(COMMAND), "get", "kvt", "--kubeconfig", str(path)]
    ran = subprocess.run(line, capture_output=True, text=True, check=False, timeout=COMMAND_SECONDS_MAX)
    assert ran.returncode == 1
    assert ran.stderr == "error: the API server refuses (401): Unauthorized\n"
