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
CHECKSUM: Final = "h1:M5xLCLEoaW2IJfnuCwFzzpL+jSVQu3KGT84Pye+fW8s="
MONITORING: Final = ("podmonitors", "prometheusrules")
PLACE: Final = "example/prometheus-operator-crd/monitoring.coreos.com_{}.yaml"


@once
def monitoring_definitions() -> tuple[Path, ...]:
    """The kinds of Prometheus' operator that the chart has objects of. Raises NoModulesError."""
    line = ["go", "mod", "download", "-json", PROMETHEUS_OPERATOR]
    settings = {**environment(), "GOFLAGS": "-mod=mod"}
    ran = subprocess.run(
        line, cwd=MODULE, env=settings, check=False, capture_output=True, text=True, timeout=FETCH_SECONDS_MAX
    )
    if ran.returncode != 0:
        raise NoModulesError(f"Go cannot fetch {PROMETHEUS_OPERATOR}: {(ran.stderr or ran.stdout).strip()}")
    found = json.loads(ran.stdout)
    assert found["Sum"] == CHECKSUM, f"{PROMETHEUS_OPERATOR} is another than it was: {found['Sum']}"
    return tuple(Path(found["Dir"]) / PLACE.format(name) for name in MONITORING)
