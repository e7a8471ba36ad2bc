"""Brokers without volumes as real pods: a roll and a lost pod begin empty, and no acknowledged record is lost."""

from e2e.cluster_namespace import DATA, Scene
from e2e.kubectl import apply, until
from tests.kube.objects import cluster, pool
from tests.support.control_plane import Json

VOTERS = pool("voters", replicas=1, roles=["controller"], storage=DATA)
BROKERS = pool("brokers", replicas=3, roles=["broker"], storage={"type": "Ephemeral", "sizeLimit": "1Gi"})
NAMES = [f"main-brokers-{number}-0" for number in (100, 101, 102)]


def wanted(**spec: object) -> Json:
    return cluster("main", nodePools=[VOTERS, BROKERS], **spec)


def directory_id(scene: Scene, name: str) -> str:
    """The id of the directory that a broker has now."""
    read = "print(open('/var/lib/kavka/data/meta.properties').read())"
    text = scene.ask("exec", name, "--container", "broker", "--", "python", "-c", read)
    return text.partition("directory.id=")[2].split()[0]


def test_each_life_of_a_broker_begins_empty_and_nothing_is_lost(scene: Scene) -> None:
    apply(wanted(), scene.namespace)
    scene.until_ready()
    scene.produces()
    claims = scene.ask("get", "pvc", "--output", "jsonpath={.items[*].metadata.name}").split()
    assert claims == ["data-main-voters-0"]
    first, before = {name: directory_id(scene, name) for name in NAMES}, scene.pods()

    apply(wanted(config={"num.io.threads": "4"}), scene.namespace)
    until(lambda: scene.status().get("lastRollout", {}).get("nodes") == 4)
    scene.until_ready()
    assert len(scene.changed(before)) == 4
    second = {name: directory_id(scene, name) for name in NAMES}
    assert not {*first.values()} & {*second.values()}

    rolled = scene.pods()
    scene.ask("delete", "pod", NAMES[0])
    until(lambda: NAMES[0] in scene.changed(rolled) and scene.phases()[NAMES[0]] == "Running")
    scene.until_ready()
    assert directory_id(scene, NAMES[0]) not in {first[NAMES[0]], second[NAMES[0]]}
    assert scene.changed(rolled) == {NAMES[0]}
    scene.has_lost_nothing()
