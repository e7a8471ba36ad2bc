"""What some tests need of a cluster that not every one has; those are skipped elsewhere, and say why."""

from pathlib import Path

import pytest

from e2e.cluster import CLUSTER


def machine() -> tuple[str, str]:
    """Return the address and the name by which pods reach this machine."""
    if CLUSTER.machine is None:
        pytest.skip("pods of this cluster have no way to this machine")
    return CLUSTER.machine


def volumes() -> Path:
    """Return the directory of this machine with the volumes, a directory each."""
    if CLUSTER.volumes is None:
        pytest.skip("volumes of this cluster are no directories of this machine")
    return CLUSTER.volumes


def own_cluster() -> None:
    """Go on where nothing is there but what the tests have made."""
    if not CLUSTER.is_own:
        pytest.skip("this test works in namespaces of this cluster that may have what is not the tests'")


def service_addresses() -> None:
    """Go on where this machine has a route to the addresses of Services."""
    if not CLUSTER.has_service_routes:
        pytest.skip("this machine has no route to the Services of this cluster")
