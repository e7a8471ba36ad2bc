"""An installation of an earlier commit is upgraded by Helm: no broker restarts for it, and the new one rolls on."""

import pytest

from e2e.cluster_namespace import Scene, scene_in
from e2e.earlier_commit import FORMER_TAG, install_former, is_known
from e2e.images import TAG
from e2e.kubectl import SECONDS_MAX, apply, ask, until
from e2e.release import BROKER_IMAGE, OPERATORS, install, uninstall
from tests.kube.objects import topic

EVICTED = "main-nodes-1-0"


def is_acting(scene: Scene, name: str) -> None:
    """Wait until the operator that runs now has made a topic."""
    apply(topic(name, partitions=1, replicationFactor=3), scene.namespace)
    scene.until_ready("topics.kavka.dev", name)


@pytest.mark.skipif(not is_known(), reason="the history of the repository is not here")
def test_an_upgrade_from_an_earlier_commit_restarts_nobody_and_loses_nothing() -> None:
    install_former()
    with scene_in("upgrade") as scene:
        scene.wants()
        scene.until_ready()
        scene.produces()
        before, former = scene.pods(), {f"{BROKER_IMAGE}:{FORMER_TAG}"}
        assert scene.images() == former

        install()
        is_acting(scene, "later")
        assert scene.pods() == before, "an upgrade of the operator restarts no broker"

        scene.ask("delete", "pod", EVICTED)
        until(lambda: scene.changed(before) == {EVICTED})
        until(lambda: set(scene.phases().values()) == {"Running"})
        is_acting(scene, "last")
        assert scene.images() == former, "a pod that is made again is as it was"
        scene.until_more()

        scene.wants(image=f"{BROKER_IMAGE}:{TAG}")
        until(lambda: scene.images() == {f"{BROKER_IMAGE}:{TAG}"})
        scene.until_ready()
        scene.has_lost_nothing()
    uninstall()
    ask("delete", "namespace", OPERATORS, f"--timeout={SECONDS_MAX}s")
