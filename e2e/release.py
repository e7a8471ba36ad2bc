"""The operator as docs/how-to/install-on-kubernetes.md installs it: the chart by Helm, in a namespace of its own."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from e2e.cluster import CLUSTER
from e2e.images import TAG
from e2e.kubectl import SECONDS_MAX, ask
from e2e.machine import STATE
from tests.kube.helm import CHART
from tools.kube.programs import program

OPERATORS = RELEASE = DEPLOYMENT = "kavka"
OPERATOR_IMAGE, BROKER_IMAGE, AUDIT_IMAGE = (f"{CLUSTER.repository}/{name}" for name in ("operator", "broker", "audit"))
OPERATOR = f"deployment/{DEPLOYMENT}"


def helm(*arguments: str | Path) -> str:
    """What helm says."""
    environment = {**os.environ, "KUBECONFIG": str(CLUSTER.kubeconfig), "HOME": str(STATE)}
    line = [str(program("helm")), "--namespace", OPERATORS, *map(str, arguments)]
    ran = subprocess.run(line, capture_output=True, text=True, check=False, timeout=2 * SECONDS_MAX, env=environment)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def install(operator: str = TAG, broker: str = TAG, secured: str = "", console_host: str = "") -> None:
    """Install the chart, or upgrade it: the same line does both. Images by their tags; in the namespace `secured`
    clusters may have certificates, and users passwords; the console is at this host.
    """
    images = {
        "image": (OPERATOR_IMAGE, operator),
        "brokerImage": (BROKER_IMAGE, broker),
        "auditImage": (AUDIT_IMAGE, TAG),
    }
    words = [
        word
        for name, (repository, tag) in images.items()
        for word in ("--set", f"{name}.repository={repository},{name}.tag={tag}")
    ]
    words += ["--set", f"securedNamespaces={{{secured}}},userSecrets={{{secured}}}"] if secured else []
    words += ["--set", f"console.host={console_host}"] if console_host else []
    # Another test may have applied the definitions without Helm.
    how = ("--create-namespace", "--take-ownership", "--wait", f"--timeout={SECONDS_MAX}s")
    helm("upgrade", "--install", RELEASE, CHART, *how, *words)


def uninstall() -> None:
    """Take the release out again."""
    helm("uninstall", RELEASE, "--wait", f"--timeout={SECONDS_MAX}s")


@contextmanager
def installed() -> Iterator[None]:
    """An operator for every namespace; its own namespace goes with it."""
    install()
    try:
        yield
    finally:
        uninstall()
        ask("delete", "namespace", OPERATORS, f"--timeout={SECONDS_MAX}s")
