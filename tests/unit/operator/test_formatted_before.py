"""Volumes on which a broker has run: no pod formats them again, so that an empty one is noticed."""

from copy import deepcopy

import pytest

from kavka_operator.domain.plan import RestartNode, StartNode
from kavka_operator.platform.kubernetes.objects.names import DIRECTORY_ID, FORMATTED
from tests.unit.operator.pods import RUNS, SIZED, Died, Scene, main

BEFORE = ["/var/lib/kavka/data"]
CLAIM = "data-main-nodes-1"


def told(scene: Scene) -> list[bool]:
    """Whether the template of each node says that its volume holds something."""
    return [before(scene, number) == BEFORE for number in range(3)]


def before(scene: Scene, number: int = 0) -> list[str]:
    """The directories that the template of a node says were formatted before."""
    (container,) = scene.api.one("StatefulSet", f"main-nodes-{number}")["spec"]["template"]["spec"]["initContainers"]
    return [place for found in container.get("env", ()) for place in found["value"].split(",")]


def formatted(scene: Scene, claim: str = CLAIM) -> str | None:
    found = scene.api.one("PersistentVolumeClaim", claim)["metadata"]["annotations"]
    assert found.get(FORMATTED) in {None, found[DIRECTORY_ID]}
    value: str | None = found.get(FORMATTED)
    return value


def test_a_volume_is_new_until_a_broker_runs_on_it_and_never_again() -> None:
    scene = Scene()
    view = scene.look()
    scene.do(*(StartNode(node.id) for node in view.wanted))
    scene.look()
    assert (told(scene), formatted(scene)) == ([False] * 3, None)
    pods = [scene.api.one("Pod", f"main-nodes-{number}-0")["metadata"]["uid"] for number in range(3)]
    scene.api.say("main-nodes-1-0", **RUNS)
    scene.look()
    assert told(scene) == [False, True, False]
    assert formatted(scene)
    assert [scene.api.one("Pod", f"main-nodes-{number}-0")["metadata"]["uid"] for number in range(3)] == pods
    written = len(scene.api.writes)
    scene.look()
    assert len(scene.api.writes) == written, "at rest nothing is written"


def test_an_operator_that_dies_in_between_is_followed_by_one_that_notes_it() -> None:
    for last in range(2):
        scene = Scene(main(1))
        view = scene.look()
        scene.do(*(StartNode(node.id) for node in view.wanted))
        scene.api.say("main-nodes-0-0", **RUNS)
        scene.api.last = len(scene.api.writes) + last
        with pytest.raises(Died):
            scene.look()
        scene.api.last = None
        scene.begin()
        scene.look()
        assert before(scene) == BEFORE
        assert formatted(scene, "data-main-nodes-0")


def test_a_held_change_is_not_in_what_is_told_to_a_template() -> None:
    scene = Scene(main(1))
    view = scene.look()
    scene.do(*(StartNode(node.id) for node in view.wanted))
    scene.api.say("main-nodes-0-0", **RUNS)
    scene.wanted = main(1, image="kavka/broker:2", config={"num.io.threads": "4"})
    scene.look()
    template = scene.api.one("StatefulSet", "main-nodes-0")["spec"]["template"]
    assert before(scene) == BEFORE
    assert template["spec"]["containers"][0]["image"] == "kavka/broker:1"
    assert "num.io.threads" not in template["metadata"]["annotations"]["kavka.dev/settings"]


def test_a_restarted_node_and_a_cluster_applied_again_know_it() -> None:
    scene = Scene()
    scene.start()
    scene.wanted = main(image="kavka/broker:2")
    scene.look()
    scene.do(RestartNode(1, "spec.image has changed"))
    assert told(scene) == [True] * 3
    for kind in ("StatefulSet", "Service", "NetworkPolicy"):
        for name in scene.api.names(kind):
            del scene.api.objects[kind, name]
    scene.api.control()
    scene.wanted = main(uid="u2")
    scene.begin()
    view = scene.look()
    scene.do(*(StartNode(node.id) for node in view.wanted))
    assert told(scene) == [True] * 3, "before any of its pods has run"


def test_a_volume_in_the_place_of_a_lost_one_is_new() -> None:
    scene = Scene()
    scene.start()
    del scene.api.objects["PersistentVolumeClaim", CLAIM]
    scene.look()
    scene.do(StartNode(1))
    assert (told(scene), formatted(scene)) == ([True, False, True], None)
    scene.run()
    scene.look()
    assert told(scene) == [True] * 3


def test_a_second_volume_is_new_and_the_first_is_not() -> None:
    scene = Scene(main(1))
    scene.start()
    volumes = [*SIZED["volumes"], {"name": "more", "size": "1Gi"}]
    scene.wanted = main(nodePools=[{"name": "nodes", "replicas": 1, "storage": {"volumes": volumes}}])
    scene.look()
    scene.do(RestartNode(0, "log.dirs has changed"))
    assert before(scene) == BEFORE
    scene.run()
    scene.look()
    assert before(scene) == [*BEFORE, "/var/lib/kavka/more"]


def test_a_pod_that_formatted_with_another_id_proves_nothing() -> None:
    scene = Scene(main(1))
    view = scene.look()
    scene.do(*(StartNode(node.id) for node in view.wanted))
    claim = deepcopy(scene.api.one("PersistentVolumeClaim", "data-main-nodes-0"))
    claim["metadata"]["annotations"][DIRECTORY_ID] = "another-id-0000000000"
    scene.api.place(claim)
    scene.api.say("main-nodes-0-0", **RUNS)
    scene.look()
    assert before(scene) == []
