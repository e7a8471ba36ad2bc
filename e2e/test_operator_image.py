"""The operator's image as a pod: it finds the API server as a pod does, takes the lease and writes a status."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.cluster import kubectl, localized
from tests.kube.cluster import CRDS
from tests.kube.objects import topic
from tests.support.waiting import until_outside

MANIFEST = Path(__file__).parent / "operator.yaml"
NAMESPACE = "operator-image"
SECONDS_MAX = 120


def ask(*arguments: str, stdin: str = "") -> str:
    """What kubectl says in this test's namespace."""
    line = [*kubectl(), "--namespace", NAMESPACE, *arguments]
    ran = subprocess.run(line, input=stdin, capture_output=True, text=True, check=False, timeout=2 * SECONDS_MAX)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


@pytest.fixture
def operator() -> Iterator[None]:
    """The pod, and the definitions of what it looks after."""
    ask("apply", "--server-side", "--filename", str(CRDS))
    ask("create", "namespace", NAMESPACE)
    ask("apply", "--filename", "-", stdin=localized(MANIFEST.read_text()))
    yield
    ask("delete", "namespace", NAMESPACE, f"--timeout={SECONDS_MAX}s")
    ask("delete", "clusterrolebinding", "operator-image")


@pytest.mark.usefixtures("operator")
def test_the_operator_takes_the_lease_and_says_what_a_topic_waits_for() -> None:
    ask("wait", "--for=condition=Ready", "pod/operator", f"--timeout={SECONDS_MAX}s")
    ask("apply", "--filename", "-", stdin=json.dumps(topic("orders")))

    def conditions() -> list[dict[str, str]]:
        status = json.loads(ask("get", "topics", "orders", "--output", "json")).get("status", {})
        return [each for each in status.get("conditions", ()) if each.get("reason") != "NotSeen"]

    until_outside(lambda: any(each["type"] == "Ready" for each in conditions()), SECONDS_MAX)
    (ready,) = (each for each in conditions() if each["type"] == "Ready")
    assert ready["status"] != "True"
    assert "main" in ready["message"]
    holder = ask("get", "leases.coordination.k8s.io", "kavka-operator", "--output", "jsonpath={.spec.holderIdentity}")
    assert holder == "operator"
