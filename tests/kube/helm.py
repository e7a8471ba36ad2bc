"""Helm as a person runs it, and the chart's objects as it renders them."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.support.control_plane import ControlPlane, Json
from tools.kube.programs import program, version

CHART = Path(__file__).parents[2] / "charts" / "kavka"
HELM_SECONDS_MAX = 120
WITHOUT_A_SERVER = ("--kube-version", version())


def helm(
    *arguments: str, values: Mapping[str, Any] | None = None, plane: ControlPlane | None = None
) -> "subprocess.CompletedProcess[str]":
    """Run helm with values on its stdin, and answer what came of it."""
    line = [str(program("helm")), *arguments, *(["--values", "-"] if values is not None else [])]
    settings = {**os.environ, "KUBECONFIG": str(plane.kubeconfig) if plane else os.devnull}
    if plane is not None:
        settings["HOME"] = str(plane.directory)  # its cache of what the API can
    stdin = yaml.safe_dump(dict(values)) if values is not None else ""
    return subprocess.run(
        line, input=stdin, capture_output=True, text=True, check=False, env=settings, timeout=HELM_SECONDS_MAX
    )


def rendered(values: Mapping[str, Any] | None = None, release: str = "kavka", namespace: str = "kavka") -> list[Json]:
    """The objects of the chart. An AssertionError where helm refuses."""
    line = ("template", release, str(CHART), "--namespace", namespace, *WITHOUT_A_SERVER)
    ran = helm(*line, values=values or {})
    assert ran.returncode == 0, ran.stderr
    return [document for document in yaml.safe_load_all(ran.stdout) if document]


def of_kind(documents: list[Json], kind: str) -> list[Json]:
    """Those of one kind."""
    return [document for document in documents if document["kind"] == kind]


def only(documents: list[Json], kind: str) -> Json:
    """The one of its kind."""
    (found,) = of_kind(documents, kind)
    return found
