"""Three nodes in three zones, as containers of Docker: `CLUSTER=kind`. It needs Docker, and what builds images.

kind is built by Go from `tools/kube/kind`; the image of its nodes is what that release of kind names.
"""

import shutil

from e2e.clusters.kubernetes import Kubernetes
from e2e.images import second_name
from e2e.machine import HERE, IMAGES, STATE, run
from tools.kube.programs import program

NAME = "kavka-e2e"
KUBECONFIG = STATE / "kind.kubeconfig"
CONFIG = HERE / "kind.yaml"
CONTAINERD = ("ctr", "--namespace", "k8s.io", "images")


def described() -> Kubernetes:
    """Return the cluster, which `up` makes."""
    return Kubernetes(KUBECONFIG, up, down, is_own=True)


def up() -> None:
    """Make the cluster, unless it is there, and give its nodes the images. Raises SystemExit and CalledProcessError."""
    if shutil.which("docker") is None:
        raise SystemExit("error: CLUSTER=kind needs Docker, and finds no program docker")
    STATE.mkdir(parents=True, exist_ok=True)
    if NAME not in kind("get", "clusters").split():
        kind("create", "cluster", "--name", NAME, "--config", str(CONFIG), "--wait", "5m")
    kind("export", "kubeconfig", "--name", NAME)
    nodes = kind("get", "nodes", "--name", NAME).split()
    for archive in sorted(IMAGES.glob("*.tar")):
        if archive.stem == "pause":
            continue  # the own node's
        kind("load", "image-archive", str(archive), "--name", NAME)
        if names := second_name(archive):
            for node in nodes:
                run("docker", "exec", node, *CONTAINERD, "tag", "--force", *names)


def down() -> None:
    """End the cluster."""
    if shutil.which("docker") is not None:
        kind("delete", "cluster", "--name", NAME)


def kind(*arguments: str) -> str:
    """Return what kind prints. Raises CalledProcessError."""
    where = ("--kubeconfig", str(KUBECONFIG)) if arguments[0] in ("create", "export", "delete") else ()
    return run(program("kind"), *arguments, *where)
