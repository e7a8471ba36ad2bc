"""A Kubernetes as the tests need it, wherever it runs."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tools.kube.programs import program

BUILT = "kavka.local"
"""The repository that images are built under: their archives name it."""


@dataclass(frozen=True, slots=True)
class Kubernetes:
    """How a cluster is started, reached and ended."""

    kubeconfig: Path
    up: Callable[[], None]
    down: Callable[[], None]
    repository: str = BUILT
    machine: tuple[str, str] | None = None
    """The address and the name by which pods reach this machine; None where they cannot."""
    is_own: bool = False
    """Whether nothing is there but what the tests have made, so that they may remove all of a namespace they share."""
    has_service_routes: bool = False
    """Whether this machine reaches the addresses of Services."""
    volumes: Path | None = None
    """The directory of this machine that has the volumes, a directory each; None where another machine has them."""


def kubectl(kubeconfig: Path) -> tuple[str, ...]:
    """Return the beginning of a command line for the cluster of this file."""
    return str(program("kubectl")), "--kubeconfig", str(kubeconfig)
