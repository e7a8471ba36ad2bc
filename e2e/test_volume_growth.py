"""A volume grows while its broker runs; one that no storage class gives is told.

The directories that this Kubernetes gives as volumes have no size, so nothing here resizes a disk. What is shown is
what the operator does: it asks for more where the storage class lets it, and says so where it does not.
"""

from collections.abc import Iterator

import pytest

from e2e.cluster_namespace import Scene
from e2e.kubectl import ask, until
from tests.kube.objects import pool, volumes

CLASS = "standard"
LARGER = pool("nodes", replicas=3, racks=["a", "b", "c"], storage=volumes({"name": "data", "size": "2Gi"}))

OF_NO_CLASS = pool("nodes", replicas=1, storage=volumes({"name": "data", "size": "1Gi", "storageClassName": "fast"}))


@pytest.fixture
def growing() -> Iterator[None]:
    """Volumes of the class may grow."""
    ask("patch", "storageclass", CLASS, "--patch", '{"allowVolumeExpansion": true}')
    yield
    ask("patch", "storageclass", CLASS, "--patch", '{"allowVolumeExpansion": false}')


def asked(scene: Scene) -> list[str]:
    """What the claims ask for."""
    return scene.ask("get", "pvc", "--output", "jsonpath={.items[*].spec.resources.requests.storage}").split()


@pytest.mark.usefixtures("growing")
def test_the_claims_grow_and_no_broker_is_restarted(loaded: Scene) -> None:
    before = loaded.pods()
    loaded.wants(LARGER)
    until(lambda: asked(loaded) == ["2Gi"] * 3)
    loaded.until_ready()
    assert loaded.pods() == before
    loaded.has_lost_nothing()


def test_a_class_that_does_not_let_volumes_grow_is_named(loaded: Scene) -> None:
    before = loaded.pods()
    loaded.wants(LARGER)
    until(lambda: bool(loaded.words("Stalled")))
    assert "data-main-nodes-0" in loaded.words("Stalled")
    assert loaded.pods() == before
    loaded.has_lost_nothing()


def test_a_class_that_is_not_there_is_named_with_its_claim(scene: Scene) -> None:
    """The scheduler's own words name neither."""
    scene.wants(OF_NO_CLASS)
    until(lambda: 'claim data-main-nodes-0 waits for a volume of StorageClass "fast"' in scene.words("Reconciling"))
    assert not scene.is_ready()
