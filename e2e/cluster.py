"""`python -m e2e.cluster up|down`: the Kubernetes that the tests run on. `CLUSTER` says which, and no test asks.

own         one node on this machine, in namespaces of its own (`clusters.own_node`); the default
kind        three nodes in three zones, which are containers of Docker (`clusters.kind_nodes`)
kubeconfig  the cluster that the kubeconfig of the environment names (`clusters.given_cluster`)
"""

import os
import sys

from e2e.clusters import given_cluster, kind_nodes, kubernetes, own_node
from e2e.clusters.kubernetes import Kubernetes

KINDS = {"own": own_node.described, "kind": kind_nodes.described, "kubeconfig": given_cluster.described}


def chosen() -> Kubernetes:
    """Return the cluster that `CLUSTER` names. Raises SystemExit."""
    name = os.environ.get("CLUSTER") or "own"
    if name not in KINDS:
        raise SystemExit(f'error: CLUSTER is "{name}"; write one of {", ".join(KINDS)}')
    return KINDS[name]()


CLUSTER = chosen()


def kubectl() -> tuple[str, ...]:
    """Return the beginning of a command line for the chosen cluster."""
    return kubernetes.kubectl(CLUSTER.kubeconfig)


def image(name: str, tag: str) -> str:
    """Return the image as the nodes of the cluster name it."""
    return f"{CLUSTER.repository}/{name}:{tag}"


def localized(manifest: str) -> str:
    """Return a manifest with the images of the cluster in the place of those that are built here."""
    return manifest.replace("kavka.local/", f"{CLUSTER.repository}/")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["up"]:
            CLUSTER.up()
            print(CLUSTER.kubeconfig)
        case ["down"]:
            CLUSTER.down()
        case _:
            raise SystemExit("usage: python -m e2e.cluster up|down")
