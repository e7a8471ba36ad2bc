"""The cluster that the kubeconfig of the environment names: `CLUSTER=kubeconfig REGISTRY=registry.example/team`.

Images are pushed to `REGISTRY`, where the nodes pull them. Without one the nodes have them already, under the names
that they are built with. The tests make namespaces, `kavka` among them, the definitions, roles and two storage classes,
and remove them; a cluster that has a namespace `kavka` or one of the definitions already is refused. One test drains
the nodes, where its brokers are on all of them, and uncordons them.
"""

import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from e2e.clusters.kubernetes import BUILT, Kubernetes, kubectl
from e2e.images import named_in, pushed, second_name
from e2e.machine import IMAGES, run

OURS = (
    "namespace/kavka",
    *(f"crd/{kind}.kavka.dev" for kind in ("kafkaclusters", "topics", "clientquotas", "kafkausers")),
)


@dataclass(slots=True)
class GivenCluster:
    """A cluster that others may use too. What is deleted at the end was missing when this very process began."""

    kubeconfig: Path
    repository: str
    run: Callable[..., str] = run
    is_begun: bool = False

    def up(self) -> None:
        """Find the cluster, and give its registry the images. Raises SystemExit."""
        if not self.kubeconfig.is_file():
            problem = f"CLUSTER=kubeconfig finds no {self.kubeconfig}; set KUBECONFIG to the one file of your cluster"
            raise SystemExit(f"error: {problem}")
        try:
            found = self.run(*kubectl(self.kubeconfig), "get", *OURS, "--ignore-not-found", "--output", "name").split()
        except subprocess.CalledProcessError:
            raise SystemExit(f"error: the cluster of {self.kubeconfig} does not answer") from None
        if found:
            problem = f"the cluster has {', '.join(found)}, which the tests would replace and delete"
            raise SystemExit(f"error: {problem}; if a former run has left them, delete them yourself")
        self.is_begun = True
        if self.repository != BUILT:
            push_all(self.repository)

    def down(self) -> None:
        """Delete the definitions, which Helm keeps, and the operator's namespace."""
        if self.is_begun:
            self.run(*kubectl(self.kubeconfig), "delete", *OURS, "--ignore-not-found")


def described() -> Kubernetes:
    """Return the cluster of the file that KUBECONFIG names, or of the one that kubectl takes by itself."""
    kubeconfig = Path(os.environ.get("KUBECONFIG") or Path.home() / ".kube" / "config")
    given = GivenCluster(kubeconfig, os.environ.get("REGISTRY", "").rstrip("/") or BUILT)
    return Kubernetes(kubeconfig, given.up, given.down, given.repository)


def push_all(repository: str) -> None:
    """Push the images that were built, and the other name that a roll takes."""
    for archive in sorted(IMAGES.glob("*.tar")):
        if archive.stem == "pause":
            continue  # the own node's
        names = second_name(archive) or (named_in(archive),)
        pushed(archive, [name.replace(BUILT, repository, 1) for name in names])
