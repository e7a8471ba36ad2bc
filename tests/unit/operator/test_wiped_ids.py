"""Claims that have lost the ids that were drawn for them: written again where a running broker proves them, or told."""

from copy import deepcopy
from typing import Any

import pytest

from kavka_operator.domain.plan import GrowVolume, StartNode
from kavka_operator.loop.interfaces import PlatformUnavailableError
from kavka_operator.platform.kubernetes.objects.names import CLUSTER_ID, DIRECTORY_ID, HOLDS_METADATA
from tests.unit.operator.pods import Scene, main

CLAIM = "data-main-nodes-1"


def wipe(scene: Scene, claim: str = CLAIM, *keys: str) -> dict[str, str]:
    """Take annotations from a claim, or all of them; what it had."""
    found = deepcopy(scene.api.one("PersistentVolumeClaim", claim))
    before: dict[str, str] = dict(found["metadata"]["annotations"])
    found["metadata"]["annotations"] = {key: value for key, value in before.items() if keys and key not in keys}
    scene.api.place(found)
    return before


def kept(scene: Scene, claim: str = CLAIM) -> dict[str, Any]:
    found: dict[str, Any] = scene.api.one("PersistentVolumeClaim", claim)["metadata"]["annotations"]
    return found


@pytest.mark.parametrize("keys", [(DIRECTORY_ID,), (CLUSTER_ID,), (DIRECTORY_ID, CLUSTER_ID), ()])
def test_ids_that_a_running_broker_proves_are_written_again(keys: tuple[str, ...]) -> None:
    scene = Scene()
    former = scene.start()
    before = wipe(scene, CLAIM, *keys)
    view = scene.look()
    assert (view.refusal, kept(scene)) == (None, before)
    assert view.wanted == former.wanted, "the directory that votes is still the same"
    written = len(scene.api.writes)
    scene.look()
    assert len(scene.api.writes) == written


def test_all_claims_may_have_lost_all_that_they_said_while_brokers_run() -> None:
    scene = Scene()
    scene.start()
    names = scene.api.names("PersistentVolumeClaim")
    before = [wipe(scene, name) for name in names]
    assert scene.look().refusal is None
    assert [kept(scene, name) for name in names] == before


def test_an_id_is_told_and_never_written_where_the_volume_may_be_another() -> None:
    scene = Scene()
    scene.start()
    before = wipe(scene, CLAIM, DIRECTORY_ID)
    scene.api.say("main-nodes-1-0", phase="Pending")
    written = len(scene.api.writes)
    refusal = scene.look().refusal
    assert refusal == (
        f'PersistentVolumeClaim "{CLAIM}" has lost {DIRECTORY_ID}: if its volume has what it had, run'
        f" kubectl annotate -n default pvc {CLAIM} {DIRECTORY_ID}={before[DIRECTORY_ID]};"
        ' if it is empty, delete the claim and the pod "main-nodes-1-0"'
    )
    assert (len(scene.api.writes), kept(scene).get(DIRECTORY_ID)) == (written, None)


def test_ids_that_nobody_knows_are_to_be_read_on_the_volume() -> None:
    scene = Scene()
    scene.start()
    for kind in ("StatefulSet", "Pod"):
        for name in scene.api.names(kind):
            del scene.api.objects[kind, name]
    wipe(scene, CLAIM, DIRECTORY_ID, CLUSTER_ID)
    scene.begin()
    refusal = scene.look().refusal or ""
    assert f"{CLUSTER_ID}=... {DIRECTORY_ID}=... with the ids in its meta.properties" in refusal


def test_an_id_that_is_lost_after_the_look_is_not_made_up() -> None:
    scene = Scene()
    scene.start()
    del scene.api.objects["StatefulSet", "main-nodes-1"]
    scene.look()
    wipe(scene, CLAIM, DIRECTORY_ID)
    scene.host.listed.relist()
    with pytest.raises(PlatformUnavailableError, match=f"has lost its {DIRECTORY_ID} since the look"):
        scene.do(StartNode(1))
    with pytest.raises(PlatformUnavailableError, match=f"has lost its {DIRECTORY_ID} since the look"):
        scene.do(GrowVolume(1, "data", 2**31))


def test_the_metadata_log_stays_in_its_volume_where_no_claim_says_which_that_is() -> None:
    volumes = [{"name": name, "size": "1Gi"} for name in ("first", "second")]

    def of(*chosen: dict[str, str]) -> Any:
        return main(nodePools=[{"name": "nodes", "replicas": 1, "storage": {"volumes": list(chosen)}}])

    scene = Scene(of(*volumes))
    scene.start()
    scene.wanted = of(*reversed(volumes))
    assert kept(scene, "first-main-nodes-0")[HOLDS_METADATA] == "true"
    wipe(scene, "first-main-nodes-0", HOLDS_METADATA)
    view = scene.look()
    assert "metadata.log.dir" not in view.seen[0].changed
