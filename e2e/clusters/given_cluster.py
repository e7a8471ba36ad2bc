"""The cluster that the kubeconfig of the environment names: `CLUSTER=kubeconfig REGISTRY=registry.example/team`.

Images are pushed to `REGISTRY`, where the nodes pull them. Without one the nodes have them already, under the names
that they are built with. The tests make namespaces, the definitions, roles and two storage classes, and remove them;
what else the cluster has is left alone. One test drains the nodes of its brokers, and uncordons them.
"""

import os
from pathlib import Path

from e2e.clusters.kubernetes import BUILT, Kubernetes
from e2e.images import NEXT_TAG, TAG, TARGETS, named_in, pushed
from e2e.machine import IMAGES, run
from tools.kube.programs import program


def described() -> Kubernetes:
    """Return the cluster of the first file that KUBECONFIG names, or of the file that kubectl takes by itself."""
    first = os.environ.get("KUBECONFIG", "").partition(os.pathsep)[0]
    kubeconfig = Path(first) if first else Path.home() / ".kube" / "config"
    repository = os.environ.get("REGISTRY", "").rstrip("/") or BUILT
    return Kubernetes(kubeconfig, lambda: up(kubeconfig, repository), lambda: None, repository)


def up(kubeconfig: Path, repository: str) -> None:
    """Find the cluster, and give its registry the images. Raises SystemExit."""
    if not kubeconfig.is_file():
        raise SystemExit(f"error: CLUSTER=kubeconfig finds no {kubeconfig}; set KUBECONFIG to the file of your cluster")
    run(program("kubectl"), "--kubeconfig", kubeconfig, "get", "--raw", "/readyz")
    if repository == BUILT:
        return
    for archive in sorted(IMAGES.glob("*.tar")):
        if archive.stem == "pause":
            continue  # the own node's
        name = named_in(archive)
        others = [name.replace(f":{TAG}", f":{NEXT_TAG}")] if archive.stem in TARGETS else []
        pushed(archive, [each.replace(BUILT, repository, 1) for each in (name, *others)])
