"""The chart by Helm: installed, upgraded and taken out while a cluster runs, and nothing hangs."""

from e2e.cluster_namespace import Scene, scene_in
from e2e.images import NEXT_TAG, TAG
from e2e.kubectl import SECONDS_MAX, apply, ask, tried, until
from e2e.release import OPERATOR, OPERATORS, install, uninstall
from tests.kube.objects import topic


def operator_images() -> str:
    """The image of the operator that is to run."""
    words = "jsonpath={.spec.template.spec.containers[0].image}"
    return ask("get", OPERATOR, "--output", words, namespace=OPERATORS)


def claims(scene: Scene) -> set[str]:
    return set(scene.ask("get", "pvc", "--output", "name").split())


def test_brokers_outlive_upgrade_and_uninstallation_and_no_namespace_hangs() -> None:
    install()
    with scene_in("chart") as scene:
        scene.wants()
        scene.until_ready()
        scene.produces()
        before = scene.pods()

        install(operator=NEXT_TAG, broker=NEXT_TAG)
        assert operator_images().endswith(f":{NEXT_TAG}")
        apply(topic("later", partitions=1, replicationFactor=3), scene.namespace)
        scene.until_ready("topics.kavka.dev", "later")
        assert scene.is_ready()
        assert scene.pods() == before, "an upgrade of the operator restarts no broker"

        uninstall()
        ask("delete", "namespace", OPERATORS, f"--timeout={SECONDS_MAX}s")
        assert tried("get", "clusterroles", "kavka-kavka").returncode != 0
        scene.until_more()
        assert scene.pods() == before
        scene.ask("get", "kafkaclusters", "main")

        install()
        apply(topic("last", partitions=1, replicationFactor=3), scene.namespace)
        scene.until_ready("topics.kavka.dev", "last")
        assert operator_images().endswith(f":{TAG}")
        assert scene.pods() == before
        scene.has_lost_nothing()

        scene.ask("delete", "kafkaclusters", "main")
        until(lambda: not scene.phases())
        assert len(claims(scene)) == 3, "claims of a deleted cluster stay"
    uninstall()
    ask("delete", "namespace", OPERATORS, f"--timeout={SECONDS_MAX}s")
