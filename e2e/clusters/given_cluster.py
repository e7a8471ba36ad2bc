"""The cluster that the kubeconfig of the environment names: `CLUSTER=kubeconfig REGISTRY=registry.example/team`.

Images are pushed to `REGISTRY`, where the nodes pull them. Without one the nodes have them already, under the names
that they are built with. The tests make namespaces, `kavka` among them, the definitions, roles and two storage classes,
and remove them; a cluster that has a namespace `kavka` or one of the definitions already is refused. One test drains
the nodes, where its brokers are on all of them, and uncordons them.
"""

import os
from pathlib import Path

from e2e.clusters.kubernetes import BUILT, Kubernetes
from e2e.images import NEXT_TAG, TAG, TARGETS, named_in, pushed
from e2e.machine import CACHE, IMAGES, run
from tools.kube.programs import program

OURS = (
    "namespace/kavka",
    *(f"crd/{kind}.kavka.dev" for kind in ("kafkaclusters", "topics", "clientquotas", "kafkausers")),
)


def described() -> Kubernetes:
    """Return the cluster of the file that KUBECONFIG names, or of the one that kubectl takes by itself."""
    kubeconfig = Path(os.environ.get("KUBECONFIG") or Path.home() / ".kube" / "config")
    repository = os.environ.get("REGISTRY", "").rstrip("/") or BUILT
    return Kubernetes(kubeconfig, lambda: up(kubeconfig, repository), lambda: down(kubeconfig), repository)


def kubectl(kubeconfig: Path) -> tuple[str, ...]:
    """Return the beginning of a command line."""
    return str(program("kubectl")), "--kubeconfig", str(kubeconfig)


def mark(kubeconfig: Path) -> Path:
    """Return the file that is there once a cluster was seen without `OURS`: what it has of them is the tests'."""
    uid = run(*kubectl(kubeconfig), "get", "namespace", "kube-system", "--output", "jsonpath={.metadata.uid}")
    return CACHE / f"given-cluster-{uid}"


def down(kubeconfig: Path) -> None:
    """Delete the definitions, which Helm keeps, where `up` has seen that there were none."""
    if kubeconfig.is_file() and mark(kubeconfig).exists():
        run(*kubectl(kubeconfig), "delete", *OURS, "--ignore-not-found")
        mark(kubeconfig).unlink()


def up(kubeconfig: Path, repository: str) -> None:
    """Find the cluster, and give its registry the images. Raises SystemExit."""
    if not kubeconfig.is_file():
        raise SystemExit(
            f"error: CLUSTER=kubeconfig finds no {kubeconfig}; set KUBECONFIG to the one file of your cluster"
        )
    found = run(*kubectl(kubeconfig), "get", *OURS, "--ignore-not-found", "--output", "name").split()
    if found and not mark(kubeconfig).exists():
        raise SystemExit(f"error: {', '.join(found)} is in the cluster already; the tests would replace and delete it")
    mark(kubeconfig).touch()
    if repository == BUILT:
        return
    for archive in sorted(IMAGES.glob("*.tar")):
        if archive.stem == "pause":
            continue  # the own node's
        name = named_in(archive)
        others = [name.replace(f":{TAG}", f":{NEXT_TAG}")] if archive.stem in TARGETS else []
        pushed(archive, [each.replace(BUILT, repository, 1) for each in (name, *others)])
