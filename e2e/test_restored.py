"""A claim that is restored with all that it says, and a volume that is empty: its broker does not begin again as if."""

import json

from e2e.cluster_namespace import Scene
from e2e.kubectl import ask, until
from e2e.release import OPERATOR, OPERATORS
from tests.support.control_plane import Json

POD, CLAIM = "main-nodes-2-0", "data-main-nodes-2"
WORDS = "was formatted before and has no meta.properties now"


def scaled(replicas: int) -> None:
    """Have so many operators, and wait for that."""
    ask("scale", OPERATOR, f"--replicas={replicas}", namespace=OPERATORS)
    ask("rollout", "status", OPERATOR, namespace=OPERATORS)


def restored(scene: Scene) -> Json:
    """The claim as a tool for backups makes it again."""
    found: Json = json.loads(scene.ask("get", "pvc", CLAIM, "--output", "json"))
    metadata = {key: found["metadata"][key] for key in ("name", "labels", "annotations")}
    for key in [key for key in metadata["annotations"] if not key.startswith("kavka.dev/")]:
        del metadata["annotations"][key]
    spec = {key: value for key, value in found["spec"].items() if key != "volumeName"}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}


def test_an_empty_volume_under_the_former_claim_is_told_and_healed_by_hand(loaded: Scene) -> None:
    claim = restored(loaded)
    assert claim["metadata"]["annotations"]["kavka.dev/formatted"]
    scaled(0)
    loaded.ask("delete", "pvc", CLAIM, "--wait=false")
    loaded.ask("delete", "pod", POD)
    until(lambda: not loaded.ask("get", "pvc", CLAIM, "--ignore-not-found", "--output", "name"))
    loaded.make(claim)
    scaled(1)
    until(lambda: WORDS in loaded.words("Stalled"))
    loaded.until_more()

    loaded.ask("delete", "pvc", CLAIM, "--wait=false")
    loaded.ask("delete", "pod", POD, "--wait=false")
    until(lambda: WORDS not in loaded.words("Stalled"))
    loaded.until_ready()
    loaded.has_lost_nothing()
