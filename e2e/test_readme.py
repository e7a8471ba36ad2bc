"""What the README has one type on Kubernetes, line by line, as a person does who has images of another registry."""

import os
import re
import subprocess
from collections.abc import Iterator

import pytest

from e2e import needs
from e2e.cluster import CLUSTER
from e2e.cluster_namespace import Scene, client
from e2e.images import ROOT, TAG
from e2e.kubectl import SECONDS_MAX, ask, until
from e2e.machine import STATE
from e2e.release import BROKER_IMAGE, OPERATOR_IMAGE, OPERATORS, uninstall
from tests.tidy.test_documents import BLOCK
from tools.kube.programs import program

OURS = {
    "registry.example.com/kavka-operator": f"{OPERATOR_IMAGE},image.tag={TAG}",
    "registry.example.com/kavka-broker": f"{BROKER_IMAGE},brokerImage.tag={TAG}",
}
RECORDS_MIN = 100


@pytest.fixture
def scene() -> Iterator[Scene]:
    """The namespace that a person begins with, as it was before once all is over."""
    needs.own_cluster()
    scene = Scene("default")
    yield scene
    ask("delete", "kafkaclusters,topics.kavka.dev,clientquotas,pods,pvc", "--all", f"--timeout={SECONDS_MAX}s")
    uninstall()
    ask("delete", "namespace", OPERATORS, f"--timeout={SECONDS_MAX}s")


def blocks() -> list[list[str]]:
    """The lines of each block of the README that has one type kubectl."""
    found = BLOCK.findall((ROOT / "README.md").read_text())
    return [block.splitlines() for block in found if "kubectl " in block]


def type_in(line: str) -> str:
    """What a line says to whom has kubectl and helm, and a kubeconfig."""
    for theirs, ours in OURS.items():
        line = line.replace(theirs, ours)
    programs = ":".join(str(program(name).parent) for name in ("kubectl", "helm"))
    environment = {
        **os.environ,
        "PATH": f"{programs}:{os.environ['PATH']}",
        "KUBECONFIG": str(CLUSTER.kubeconfig),
        "HOME": str(STATE),
    }
    ran = subprocess.run(
        ["/bin/sh", "-ec", line], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, f"{line}\n{ran.stdout}{ran.stderr}"
    return ran.stdout


def test_its_lines_make_a_cluster_that_outlives_its_deletion(scene: Scene) -> None:
    begin, end = blocks()
    shown = [type_in(line) for line in begin]
    assert re.search(r"kafkacluster\S*/main .* True ", shown[-1]), shown[-1]
    scene.make(client("producer", "produce", scene.bootstrap))
    scene.ask("wait", "--for=condition=Ready", "pod/producer", f"--timeout={SECONDS_MAX}s")
    until(lambda: scene.acknowledged() > RECORDS_MIN)
    count = scene.acknowledged()
    scene.ask("delete", "pod", "producer", "--now")
    scene.check(count)
    for line in (*end, *begin[1:]):
        type_in(line)
    scene.check(count, "again")
