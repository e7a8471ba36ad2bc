"""Definitions of resources that others look after, from the Go modules of those.

A module is known by its version and by the checksum of all that is in it, as in go.sum.
"""

import json
import subprocess
from functools import cache as once
from pathlib import Path
from typing import Final

from tools.kube.programs import FETCH_SECONDS_MAX, MODULE, NoModulesError, environment

PROMETHEUS_OPERATOR: Final = "github.com/prometheus-operator/prometheus-operator@v0.85.0"
PROMETHEUS_CHECKSUM: Final = "h1:M5xLCLEoaW2IJfnuCwFzzpL+jSVQu3KGT84Pye+fW8s="
MONITORING: Final = ("podmonitors", "prometheusrules")
PLACE: Final = "example/prometheus-operator-crd/monitoring.coreos.com_{}.yaml"
SPARK_OPERATOR: Final = "github.com/kubeflow/spark-operator/v2@v2.3.0"
SPARK_CHECKSUM: Final = "h1:cYN/331gwkdZ0S/ai72JQoUv7UK52O2OQOWFpl8XhPc="
SCHEDULED: Final = "config/crd/bases/sparkoperator.k8s.io_scheduledsparkapplications.yaml"


@once
def monitoring_definitions() -> tuple[Path, ...]:
    """The kinds of Prometheus' operator that the chart has objects of. Raises NoModulesError."""
    place = directory(PROMETHEUS_OPERATOR, PROMETHEUS_CHECKSUM)
    return tuple(place / PLACE.format(name) for name in MONITORING)


@once
def spark_definition() -> Path:
    """The kind of Kubeflow's Spark operator that there is a sample of. Raises NoModulesError."""
    return directory(SPARK_OPERATOR, SPARK_CHECKSUM) / SCHEDULED


def directory(module: str, checksum: str) -> Path:
    """Where the files of a module are, which is fetched where it is not there. Raises NoModulesError."""
    line = ["go", "mod", "download", "-json", module]
    settings = {**environment(), "GOFLAGS": "-mod=mod"}
    ran = subprocess.run(
        line, cwd=MODULE, env=settings, check=False, capture_output=True, text=True, timeout=FETCH_SECONDS_MAX
    )
    if ran.returncode != 0:
        raise NoModulesError(f"Go cannot fetch {module}: {(ran.stderr or ran.stdout).strip()}")
    found = json.loads(ran.stdout)
    assert found["Sum"] == checksum, f"{module} is another than it was: {found['Sum']}"
    return Path(found["Dir"])
