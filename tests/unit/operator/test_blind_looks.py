"""A look at nodes that fails: nobody may take one, and topics, quotas and users are looked after all the same."""

import pytest

from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.api.kinds import key_of
from kavka_operator.domain.cluster_view import View
from kavka_operator.loop.cluster_loop import ClusterLoop
from kavka_operator.loop.interfaces import NotWrittenError
from tests.unit.operator.fakes import NOW, topic
from tests.unit.operator.test_cluster_loop import Scene


@pytest.mark.parametrize(
    ("error", "reason"),
    [(NotWrittenError("forbidden: statefulsets"), "PlatformUnavailable"), (RuntimeError("no"), "ReconcileError")],
)
def test_a_look_at_nodes_that_fails_stops_nothing_else_and_closes_every_budget(
    error: Exception, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = Scene()
    scene.settle()
    assert scene.platform.allowed == {0}

    def fail(_: KafkaCluster) -> View:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(scene.platform, "look", fail)
        scene.resources.put(topic("more", partitions=1))
        assert scene.turn()
        assert scene.platform.allowed == frozenset()
        assert "more" in scene.kafka.topics
        conditions = scene.resources.status(scene.wanted[0])["conditions"]
        assert [found["status"] for found in conditions if found["type"] == "Available"] == ["True"], "brokers answer"
        assert scene.reason(0) == reason
        assert scene.loop.seconds_left == 1.0
    scene.seconds += 1.0
    scene.resources.put(topic("again", partitions=1))
    scene.settle()
    assert (scene.reason(0), scene.platform.allowed) == ("Ready", frozenset({0}))


def test_an_operator_that_has_never_seen_the_nodes_asks_those_of_the_status() -> None:
    scene = Scene()
    scene.settle()
    scene.loop = replace_loop(scene)
    scene.resources.documents[key_of(scene.wanted[0])]["status"]["bootstrapServers"] = "127.0.0.1:9092"

    scene.platform.unseen = NotWrittenError("forbidden")
    scene.resources.put(topic("more", partitions=1))
    assert scene.turn()
    assert "more" in scene.kafka.topics


def replace_loop(scene: Scene) -> ClusterLoop:
    """The loop of an operator that has just begun."""
    return ClusterLoop(
        scene.resources,
        scene.platform,
        lambda *_: scene.kafka,
        scene.told.append,
        lambda: None,
        lambda: scene.seconds,
        lambda: NOW,
    )
