"""A volume grows while its broker runs; one that no storage class gives is told.

The directories that this Kubernetes gives as volumes have no size, so nothing here resizes a disk. What is shown is
what the operator does: it asks for more where the storage class lets it, and says so where it does not.
"""

import json
from collections.abc import Iterator

import pytest

from e2e.cluster_namespace import Scene
from e2e.kubectl import apply, ask, until
from tests.kube.objects import pool, volumes
from tests.support.control_plane import Json

GROWING, FIXED = "kavka-e2e-growing", "kavka-e2e-fixed"
IS_DEFAULT = "storageclass.kubernetes.io/is-default-class"

OF_NO_CLASS = pool("nodes", replicas=1, storage=volumes({"name": "data", "size": "1Gi", "storageClassName": "fast"}))


@pytest.fixture(scope="module")
def classes() -> Iterator[None]:
    """Two classes of the provisioner that the default one has: volumes of the one may grow, of the other not."""
    listed = json.loads(ask("get", "storageclasses", "--output", "json"))["items"]
    default = next(each for each in listed if each["metadata"].get("annotations", {}).get(IS_DEFAULT) == "true")
    of_default = {key: default[key] for key in ("provisioner", "parameters", "volumeBindingMode") if key in default}
    for name in (GROWING, FIXED):
        made = {**of_default, "metadata": {"name": name}, "allowVolumeExpansion": name == GROWING}
        apply({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", **made}, "default")
    yield
    ask("delete", "storageclass", GROWING, FIXED)


def three(storage_class: str, size: str) -> Json:
    """Three brokers, with a volume of that class and size each."""
    storage = volumes({"name": "data", "size": size, "storageClassName": storage_class})
    return pool("nodes", replicas=3, racks=["a", "b", "c"], storage=storage)


def producing(scene: Scene, storage_class: str) -> dict[str, str]:
    """Three brokers that a client produces to; their pods."""
    scene.wants(three(storage_class, "1Gi"))
    scene.until_ready()
    scene.produces()
    return scene.pods()


def asked(scene: Scene) -> list[str]:
    """What the claims ask for."""
    return scene.ask("get", "pvc", "--output", "jsonpath={.items[*].spec.resources.requests.storage}").split()


@pytest.mark.usefixtures("classes")
def test_the_claims_grow_and_no_broker_is_restarted(scene: Scene) -> None:
    before = producing(scene, GROWING)
    scene.wants(three(GROWING, "2Gi"))
    until(lambda: asked(scene) == ["2Gi"] * 3)
    scene.until_ready()
    assert scene.pods() == before
    scene.has_lost_nothing()


@pytest.mark.usefixtures("classes")
def test_a_class_that_does_not_let_volumes_grow_is_named(scene: Scene) -> None:
    before = producing(scene, FIXED)
    scene.wants(three(FIXED, "2Gi"))
    until(lambda: bool(scene.words("Stalled")))
    assert "data-main-nodes-0" in scene.words("Stalled")
    assert scene.pods() == before
    scene.has_lost_nothing()


def test_a_class_that_is_not_there_is_named_with_its_claim(scene: Scene) -> None:
    """The scheduler's own words name neither."""
    scene.wants(OF_NO_CLASS)
    until(lambda: 'claim data-main-nodes-0 waits for a volume of StorageClass "fast"' in scene.words("Reconciling"))
    assert not scene.is_ready()
