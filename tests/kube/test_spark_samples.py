"""The sample for Kubeflow's Spark operator, on a real API server that has that operator's own definition."""

import json
from collections.abc import Iterator

import pytest
import yaml

from tests.kube.cluster import wait_for_kinds
from tests.support.control_plane import ControlPlane, Json, kubectl
from tests.support.waiting import until_outside
from tests.tidy.tree import ROOT
from tools.kube.definitions import spark_definition

PLACE = "shop"
CRD = "crd/scheduledsparkapplications.sparkoperator.k8s.io"
SAMPLE: Json = yaml.safe_load((ROOT / "examples" / "spark" / "kubeflow.yaml").read_text())
APPLY = ("apply", "--server-side", "--validate=strict", "--filename", "-")


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane that knows the kind."""
    with ControlPlane(tmp_path_factory.mktemp("spark")) as found:
        assert kubectl(found, "create", "namespace", PLACE).returncode == 0
        ran = kubectl(found, "apply", "--server-side", "--filename", str(spark_definition()))
        assert ran.returncode == 0, ran.stderr
        # A definition that is new has no conditions yet, which kubectl takes for an error.
        until_outside(lambda: kubectl(found, "wait", "--for=condition=Established", CRD).returncode == 0)
        wait_for_kinds(found, SAMPLE["apiVersion"], {"scheduledsparkapplications"})
        yield found


def test_the_api_server_takes_the_sample_without_a_warning(plane: ControlPlane) -> None:
    ran = kubectl(plane, *APPLY, stdin=json.dumps(SAMPLE), namespace=PLACE)
    assert ran.returncode == 0, ran.stderr
    assert "Warning" not in ran.stderr
    shown = kubectl(plane, "get", "scheduledsparkapplications", "main-audit", "--output", "json", namespace=PLACE)
    assert json.loads(shown.stdout)["spec"] == SAMPLE["spec"]


@pytest.mark.parametrize(
    ("part", "value"),
    [("executors", {}), ("type", "Rust"), ("volumes", {"name": "data"}), ("executor", {"instances": "2"})],
)
def test_the_api_server_refuses_what_that_operator_does_not_know(plane: ControlPlane, part: str, value: object) -> None:
    spec = {**SAMPLE["spec"], "template": {**SAMPLE["spec"]["template"], part: value}}
    ran = kubectl(plane, *APPLY, stdin=json.dumps({**SAMPLE, "spec": spec}), namespace=PLACE)
    assert ran.returncode != 0
    assert part in ran.stderr
