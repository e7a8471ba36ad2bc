"""The loop of one cluster: when it looks, what it does with what it has seen, and what does not end it."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from kavka_operator.api.audit import AnalyticsStatus
from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.api.cluster_status import RolloutStatus
from kavka_operator.api.kinds import AnyResource, key_of
from kavka_operator.api.stored_resources import Unreadable
from kavka_operator.domain.observed import SeenNode, SeenPartition
from kavka_operator.domain.plan import ClusterPlan, Plan, StartNode, StopNode, reconciling
from kavka_operator.kafka.admin import AdminError
from kavka_operator.loop.cluster_loop import FOREIGN_ROLL, ClusterLoop, HopelessError
from kavka_operator.loop.interfaces import NotWrittenError, Platform
from kavka_operator.loop.requeue import (
    DRIFT_SECONDS,
    DRIFT_SECONDS_MAX,
    HASTE_SECONDS,
    HASTY_LOOKS_MAX,
    RETRY_SECONDS,
    Haste,
    rest_seconds,
)
from kavka_operator.loop.status_writer import SAID_MAX, SAID_SECONDS
from kavka_operator.loop.unreachable import SILENT_SECONDS
from tests.unit.operator.fakes import NOW, FakeKafka, FakePlatform, FakeResources, cluster, quota, topic
from tests.unit.operator.nowhere import Nowhere

AWAY = AdminError("nobody answers", retriable=True)
WHOLE, EACH = quota("whole", scope="Cluster"), quota("each")


@pytest.mark.parametrize(
    ("took", "of_each", "of_whole"),
    [(0.01, DRIFT_SECONDS, DRIFT_SECONDS), (2.0, 40.0, 8.0), (100.0, DRIFT_SECONDS_MAX, DRIFT_SECONDS_MAX)],
)
def test_a_budget_of_the_cluster_is_looked_after_more_often(took: float, of_each: float, of_whole: float) -> None:
    assert rest_seconds(took, []) == rest_seconds(took, [EACH]) == of_each
    assert rest_seconds(took, [EACH, WHOLE]) == of_whole


def test_a_roll_that_waits_is_looked_at_less_often_until_something_moves() -> None:
    haste = Haste()
    waits: ClusterPlan = Plan(words=reconciling("RollingRestart", "orders-0 has 1 of 3 in sync"))
    moved = replace(waits, words=reconciling("RollingRestart", "orders-0 has 2 of 3 in sync"))
    assert [haste.seconds(waits) for _ in range(HASTY_LOOKS_MAX)] == [HASTE_SECONDS] * HASTY_LOOKS_MAX
    assert haste.seconds(waits) == RETRY_SECONDS
    assert haste.seconds(moved) == HASTE_SECONDS
    acts = replace(moved, actions=(StartNode(0),))
    assert {haste.seconds(acts) for _ in range(2 * HASTY_LOOKS_MAX)} == {HASTE_SECONDS}


class Scene:
    """A loop with a Kafka, a platform and resources in memory."""

    def __init__(self, *, refusal: str | None = None, platform: Platform | None = None) -> None:
        self.kafka, self.platform = FakeKafka(), FakePlatform(refusal)
        self.wanted: list[AnyResource] = [
            cluster(),
            topic("orders", partitions=3),
            quota("clicks", limits={"producerByteRate": 1000}),
        ]
        self.resources = FakeResources(*self.wanted)
        self.seconds, self.told, self.readied = 0.0, list[str](), list[int]()
        self.loop = ClusterLoop(
            self.resources,
            platform or self.platform,
            lambda *_: self.kafka,
            self.told.append,
            lambda: self.readied.append(1),
            lambda: self.seconds,
            lambda: NOW,
        )

    def turn(self, meanwhile: Callable[[], object] = lambda: None) -> bool:
        """One turn of the loop; whether it looked."""
        question = self.loop.due()
        if question is None:
            return False
        result = self.loop.look(question)
        meanwhile()
        self.loop.follow(result)
        return True

    def pass_looks(self, seconds: float) -> None:
        """Let so much time pass, with the looks that are due in it."""
        until = self.seconds + seconds
        while self.seconds < until:
            self.turn()
            self.seconds = min(self.seconds + max(self.loop.seconds_left, HASTE_SECONDS), until)

    def settle(self) -> None:
        """Let the loop come to rest."""
        for _ in range(20):
            self.turn()
            if self.loop.seconds_left == DRIFT_SECONDS:
                return
            self.seconds += self.loop.seconds_left
        pytest.fail("it does not come to rest")

    def reason(self, place: int) -> str:
        conditions = self.resources.status(self.wanted[place])["conditions"]
        return next(str(condition["reason"]) for condition in conditions if condition["type"] == "Ready")


def test_nodes_start_then_topics_come_then_all_rests_and_nothing_is_written() -> None:
    scene = Scene()
    assert scene.turn()
    assert scene.platform.actions == [StartNode(0)]
    assert scene.loop.seconds_left == HASTE_SECONDS
    scene.settle()
    assert [scene.reason(place) for place in range(3)] == ["Ready", "Ready", "Ready"]
    assert scene.readied == [1]
    before = scene.resources.writes, len(scene.kafka.writes), len(scene.platform.actions)
    scene.seconds += 1000.0
    assert scene.turn()
    assert (scene.resources.writes, len(scene.kafka.writes), len(scene.platform.actions)) == before
    assert scene.loop.seconds_left == DRIFT_SECONDS


def test_a_look_is_due_when_a_resource_changes_or_somebody_hurries() -> None:
    scene = Scene()
    scene.settle()
    assert not scene.turn()
    scene.resources.put(topic("more", partitions=1))
    assert scene.turn()
    assert "more" in scene.kafka.topics
    scene.settle()
    scene.loop.hurry()
    assert scene.turn()


def test_what_was_decided_before_a_node_moved_is_not_done() -> None:
    scene = Scene()
    assert scene.turn(meanwhile=lambda: scene.platform.move(0, "Running"))
    assert scene.platform.actions == [], "the node has come up by itself since the look began"
    assert scene.turn(), "and the next look is due at once"


def test_a_fault_in_a_turn_is_shown_told_once_and_tried_again_when_something_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scene = Scene()
    scene.settle()

    def fail(_: object) -> bool:
        raise RuntimeError("no such thing")

    with monkeypatch.context() as patch:
        patch.setattr("kavka_operator.loop.cluster_loop.claims", lambda *_: fail(None))
        scene.loop.hurry()
        assert not scene.turn()
        assert scene.reason(0) == "ReconcileError"
        assert sum("no such thing" in words for words in scene.told) == 1
    assert scene.loop.seconds_left == 1.0, "it says when it tries again"
    scene.loop.hurry()
    assert not scene.turn(), "it waits before it tries again"
    assert scene.loop.seconds_left == 1.0, "and does not spin"
    scene.resources.put(topic("more"))
    assert scene.turn()
    assert scene.reason(0) == "Ready"


def test_a_cluster_that_does_not_answer_is_asked_again_soon() -> None:
    scene = Scene()
    scene.settle()
    scene.kafka.away = AWAY
    scene.seconds += 1000.0
    assert scene.turn()
    assert scene.reason(0) == "NotAnswering"
    assert scene.loop.seconds_left == RETRY_SECONDS
    assert scene.told[-1] == "nobody answers"


def test_topics_and_quotas_of_a_silent_cluster_are_unknown_after_a_while_until_it_answers() -> None:
    scene = Scene()
    scene.settle()
    scene.kafka.away = AWAY
    scene.pass_looks(SILENT_SECONDS)
    assert [scene.reason(place) for place in range(3)] == ["NotAnswering", "Ready", "Ready"]
    scene.pass_looks(2 * DRIFT_SECONDS)
    assert [scene.reason(place) for place in (1, 2)] == ["ClusterUnavailable"] * 2
    assert "none answers: nobody answers" in scene.resources.status(scene.wanted[0])["conditions"][0]["message"]
    status = scene.resources.status(scene.wanted[1])
    (ready,) = status["conditions"]
    assert (ready["type"], ready["status"]) == ("Ready", "Unknown")
    assert 'KafkaCluster "main" does not answer' in ready["message"]
    assert status["partitions"] == 3, "what was seen before is still there"
    before = scene.resources.writes
    scene.pass_looks(10 * SILENT_SECONDS)
    assert scene.resources.writes == before
    scene.kafka.away = None
    scene.pass_looks(RETRY_SECONDS)
    scene.settle()
    assert [scene.reason(place) for place in range(3)] == ["Ready", "Ready", "Ready"]


@pytest.mark.parametrize(("minutes", "is_gone"), [(9, False), (10, True)])
def test_a_deletion_waits_for_a_silent_cluster_for_a_while_and_no_longer(minutes: int, is_gone: bool) -> None:
    scene = Scene()
    scene.settle()
    scene.kafka.away = AWAY
    deleted = {"deletionTimestamp": (NOW - timedelta(minutes=minutes)).isoformat()}
    scene.resources.put(topic("late", metadata=deleted, deletionPolicy="Delete"))
    scene.pass_looks(SILENT_SECONDS / 2)
    assert ("Topic", "default", "late") in scene.resources.documents, "a broker may be restarting"
    scene.pass_looks(SILENT_SECONDS)
    assert (("Topic", "default", "late") not in scene.resources.documents) is is_gone
    assert any("late" in words and "what it has set in Kafka stays" in words for words in scene.told) is is_gone
    if not is_gone:
        (ready,) = scene.resources.documents["Topic", "default", "late"]["status"]["conditions"]
        assert "its deletion waits for that until " in ready["message"]


def test_a_cluster_that_answers_between_two_silences_is_not_silent() -> None:
    scene = Scene()
    scene.settle()
    for _ in range(3):
        scene.kafka.away = AWAY
        scene.pass_looks(0.9 * SILENT_SECONDS)
        scene.kafka.away = None
        scene.settle()
        assert [scene.reason(place) for place in (1, 2)] == ["Ready", "Ready"]


def test_a_topic_that_was_changed_while_its_cluster_was_away_is_not_said_to_be_corrected() -> None:
    scene = Scene()
    scene.resources.put(topic("mine", config={"retention.ms": "1000"}))
    scene.settle()
    scene.kafka.away = AWAY
    mine = scene.resources.documents["Topic", "default", "mine"]
    mine["spec"]["config"], mine["metadata"]["generation"] = {"retention.ms": "2000"}, 2
    scene.resources.version += 1
    scene.pass_looks(2 * SILENT_SECONDS)
    assert mine["status"]["observedGeneration"] == 2
    scene.kafka.away = None
    scene.pass_looks(RETRY_SECONDS)
    scene.settle()
    assert scene.kafka.topics["mine"].overrides == {"retention.ms": "2000"}
    assert "lastCorrection" not in mine["status"]


def test_a_cluster_that_cannot_be_run_ends_the_loop_only_while_nothing_of_it_runs() -> None:
    scene = Scene(refusal="ports clash")
    with pytest.raises(HopelessError, match="ports clash"):
        scene.turn()
    assert scene.loop.seconds_left <= DRIFT_SECONDS, "on Kubernetes it goes on: what is in its way may go away"
    scene = Scene()
    scene.settle()
    scene.platform.refusal = "ports clash"
    scene.loop.hurry()
    assert scene.turn()
    assert scene.reason(0) == "Unsupported"


def test_a_change_that_is_refused_leaves_the_address_and_the_analytics_in_the_status() -> None:
    """Clients read the one address there; the nodes run on as they were."""
    scene = Scene()
    scene.platform.begin = "main-bootstrap.default.svc:9092"
    scene.platform.analytics = AnalyticsStatus(state="Succeeded")
    scene.settle()
    before = scene.resources.status(scene.wanted[0])
    scene.platform.refusal = "ports clash"
    scene.loop.hurry()
    assert scene.turn()
    after = scene.resources.status(scene.wanted[0])
    assert scene.reason(0) == "Unsupported"
    assert after["bootstrapServers"] == before["bootstrapServers"] == "main-bootstrap.default.svc:9092"
    assert after["analytics"] == before["analytics"] == {"state": "Succeeded"}


def test_a_resource_is_held_before_anything_is_made_for_it_if_its_deletion_does_something() -> None:
    scene = Scene()
    scene.resources.put(topic("mine", deletionPolicy="Delete"))
    scene.settle()
    held = {key[2]: is_held for key, is_held in scene.resources.held.items()}
    assert held == {"orders": False, "mine": True, "clicks": True}
    scene.resources.refuse = NotWrittenError("no")
    scene.resources.put(topic("other", deletionPolicy="Delete"))
    scene.settle()
    assert "other" not in scene.kafka.topics, "it could not be taken away again"


def test_without_their_cluster_topics_and_quotas_say_so_and_may_go() -> None:
    scene = Scene()
    scene.settle()
    scene.resources.put(topic("late", metadata={"deletionTimestamp": "2026-11-21T12:00:00Z"}, deletionPolicy="Delete"))
    scene.resources.remove(key_of(scene.wanted[0]))
    assert not scene.turn()
    assert [scene.reason(place) for place in (1, 2)] == ["NoSuchCluster", "NoSuchCluster"]
    assert ("Topic", "default", "late") not in scene.resources.documents
    assert "orders" in scene.kafka.topics
    scene.resources.put(scene.wanted[0])
    scene.settle()
    assert [scene.reason(place) for place in range(3)] == ["Ready", "Ready", "Ready"]


def test_nodes_that_cannot_run_here_are_told_of() -> None:
    scene = Scene(platform=Nowhere())
    with pytest.raises(HopelessError, match="no room for nodes"):
        scene.turn()
    assert scene.loop.seconds_left <= DRIFT_SECONDS
    assert scene.reason(0) == "PlatformUnavailable"


def unread(kind: str, name: str, **metadata: str) -> Unreadable:
    document = {"kind": kind, "metadata": {"name": name, "namespace": "default", **metadata}, "spec": {"odd": 1}}
    return Unreadable((kind, "default", name), document, "spec.odd: cannot be understood")


def test_what_cannot_be_understood_may_go_without_its_cluster() -> None:
    scene = Scene()
    scene.settle()
    gone = unread("Topic", "odd", deletionTimestamp="2026-11-21T12:00:00Z")
    scene.resources.documents[gone.key] = gone.document
    scene.resources.hide(gone, unread("Topic", "strange"))
    scene.resources.remove(key_of(scene.wanted[0]))
    assert not scene.turn()
    assert gone.key not in scene.resources.documents, "its finalizer would keep its namespace forever"
    assert scene.resources.noted == [("Topic", "default", "strange")]


def test_a_cluster_that_cannot_be_understood_from_the_start_says_so() -> None:
    scene = Scene()
    scene.resources.remove(key_of(scene.wanted[0]))
    scene.resources.hide(unread("KafkaCluster", "main"))
    with pytest.raises(HopelessError, match="cannot be understood"):
        scene.turn()
    assert scene.resources.noted == [("KafkaCluster", "default", "main")]


def test_a_status_that_cannot_be_written_of_what_cannot_be_understood_holds_up_nothing() -> None:
    scene = Scene()
    scene.resources.hide(unread("Topic", "strange"))
    scene.resources.refuse_notes = NotWrittenError("status.partitions: no number")
    scene.settle()
    assert [scene.reason(place) for place in range(3)] == ["Ready", "Ready", "Ready"]
    assert any("cannot be written" in words for words in scene.told)


def test_nothing_is_done_for_a_cluster_that_is_deleted_during_a_look() -> None:
    scene = Scene()
    assert scene.turn(meanwhile=lambda: scene.resources.remove(key_of(scene.wanted[0])))
    assert scene.platform.actions == []
    assert not scene.turn()
    assert scene.reason(1) == "NoSuchCluster"


def test_sentences_that_take_turns_are_told_once_each_and_again_much_later() -> None:
    scene = Scene()
    for _ in range(3):
        scene.loop.writer.say_once("a disk is full")
        scene.loop.writer.say_once("node 1 waits")
    assert scene.told == ["a disk is full", "node 1 waits"]
    scene.seconds += SAID_SECONDS
    scene.loop.writer.say_once("a disk is full")
    assert scene.told[2:] == ["a disk is full"]
    for number in range(2 * SAID_MAX):
        scene.loop.writer.say_once(f"sentence {number}")
    assert len(scene.loop.writer.said) == SAID_MAX


def rolling() -> Scene:
    """A node that runs, and is to be restarted for another setting."""
    scene = Scene()
    scene.settle()
    scene.platform.nodes = {0: SeenNode(0, "Running", "former")}
    scene.platform.moves += 1
    return scene


def test_a_rollout_that_was_written_by_hand_is_told_of_and_goes() -> None:
    scene = Scene()
    scene.settle()
    found = scene.resources.read()[0][0]
    assert isinstance(found, KafkaCluster)
    forged = RolloutStatus(plan="p", progress="1/1000", done=1, total=1000)
    scene.resources.put(found.replaced({"status": found.status.replaced({"rollout": forged})}))
    scene.loop.hurry()
    scene.turn()
    kept = scene.resources.read()[0][0]
    assert isinstance(kept, KafkaCluster)
    assert (kept.status.rollout, kept.status.last_rollout) == (None, None)
    assert FOREIGN_ROLL in scene.told


def test_the_budget_of_a_node_opens_at_rest() -> None:
    scene = Scene()
    scene.settle()
    assert scene.platform.allowed == {0}, "a lone broker is a risk that no waiting mends"


def test_before_a_restart_nobody_else_may_take_a_node_and_it_is_looked_again() -> None:
    scene = rolling()
    scene.platform.allowed = frozenset({0})
    del scene.platform.actions[:]
    scene.loop.hurry()
    scene.turn()
    assert (scene.platform.allowed, scene.platform.actions) == (frozenset(), []), "somebody may just have used it"
    scene.loop.hurry()
    scene.turn()
    assert [str(action) for action in scene.platform.actions] == ["restart node 0: its settings have changed"]


def test_no_node_is_restarted_where_its_budget_cannot_be_closed() -> None:
    scene = rolling()
    scene.platform.refuse = "budgets cannot be written"
    del scene.platform.actions[:]
    scene.loop.hurry()
    scene.turn()
    assert scene.platform.actions == []
    assert scene.reason(0) == "PlatformUnavailable"


def test_what_becomes_of_resources_is_announced_once() -> None:
    scene = Scene()
    scene.resources.put(topic("mine", metadata={"uid": "u"}, deletionPolicy="Delete"))
    said = list[tuple[str, str, str]]()
    scene.loop.writer.send = lambda key, uid, notice: said.append((key[2], uid, notice.reason))
    scene.settle()
    assert sorted(said) == [
        ("clicks", "", "QuotaSet"),
        ("main", "", "NodeStarting"),
        ("mine", "u", "TopicCreated"),
        ("orders", "", "TopicCreated"),
    ]
    said.clear()
    scene.seconds += 1000.0
    assert scene.turn()
    assert said == []
    mine = scene.resources.documents["Topic", "default", "mine"]
    mine["metadata"] |= {"deletionTimestamp": "2026-11-21T12:00:00Z"}
    scene.loop.hurry()
    scene.settle()
    assert said == [("mine", "u", "TopicDeleted")]
    scene.resources.hide(unread("Topic", "strange", uid="s"))
    scene.settle()
    assert said[1:] == [("strange", "s", "Invalid")]


def test_a_deleted_resource_that_cannot_be_let_go_keeps_no_other_and_is_tried_again_soon() -> None:
    scene = Scene()
    for name in ("a", "b", "c"):
        scene.resources.put(topic(name, deletionPolicy="Delete"))
    scene.settle()
    for name in ("a", "b", "c"):
        scene.resources.documents["Topic", "default", name]["metadata"]["deletionTimestamp"] = "2026-11-21T12:00:00Z"
    scene.resources.keep["a"] = NotWrittenError("no room")
    scene.loop.hurry()
    assert scene.turn()
    assert 'Topic "a" is deleted and cannot be let go: no room' in scene.told
    assert [key[2] for key in scene.resources.documents if key[2] in {"a", "b", "c"}] == ["a"]
    assert scene.loop.seconds_left <= RETRY_SECONDS
    scene.resources.keep.clear()
    scene.loop.hurry()
    assert scene.turn()
    assert ("Topic", "default", "a") not in scene.resources.documents


def test_a_place_for_announcements_that_fails_holds_up_nothing() -> None:
    scene = Scene()

    def fail(*_: object) -> None:
        raise RuntimeError("no place")

    scene.loop.writer.send = fail
    scene.resources.hide(unread("Topic", "strange"))
    scene.settle()
    assert [scene.reason(place) for place in range(3)] == ["Ready", "Ready", "Ready"]
    assert sum("no place" in words for words in scene.told) == 1


def test_no_budget_stays_open_while_a_cluster_cannot_be_run_as_it_is_wanted() -> None:
    scene = Scene()
    scene.settle()
    assert scene.platform.allowed == {0}
    scene.platform.refusal = "ports clash"
    scene.loop.hurry()
    scene.turn()
    assert scene.platform.allowed == frozenset(), "nobody judges any more which node may go"
    conditions = scene.resources.status(scene.wanted[0])["conditions"]
    assert [found["status"] for found in conditions if found["type"] == "Available"] == ["True"], "brokers answer"


def leaving() -> Scene:
    """A node of two that run is no longer wanted, and holds nothing."""
    scene = Scene()
    scene.settle()
    scene.platform.allowed = frozenset()
    del scene.platform.actions[:]
    scene.platform.move(1, "Running")
    scene.loop.hurry()
    return scene


def test_a_node_that_holds_nothing_when_it_is_asked_for_again_is_stopped() -> None:
    scene = leaving()
    scene.turn()
    assert scene.platform.actions == [StopNode(1)]


def test_a_node_that_was_given_a_replica_since_the_look_is_not_stopped() -> None:
    scene = leaving()
    given = (SeenPartition("orders", 0, 1, (1,), (1,)),)
    scene.turn(lambda: setattr(scene.kafka, "partitions", given))
    assert scene.platform.actions == []
    words = "node 1 is not stopped yet: it holds 1 replica (orders-0)"
    assert (scene.reason(0), words in scene.told) == ("Shrinking", True)


def test_a_node_is_not_stopped_where_nobody_tells_what_it_holds() -> None:
    scene = leaving()

    def untold() -> None:
        scene.kafka.untold = AdminError("no broker answers")

    scene.turn(untold)
    assert (scene.platform.actions, scene.reason(0)) == ([], "Shrinking")
    assert "node 1 is not stopped yet: no broker answers" in scene.told


def test_many_resources_at_once_do_not_keep_the_nodes_waiting() -> None:
    scene, order = Scene(), list[str]()
    scene.settle()
    scene.platform.calls = scene.resources.calls = order
    scene.resources.together.clear()
    many = [topic(f"t{number}", partitions=1) for number in range(250)]
    for resource in many:
        scene.resources.put(resource)
    assert scene.turn()
    assert order[:2] == ["look", "hold"]
    assert order.count("hold") == 1, "they are held together"
    (together,) = scene.resources.together
    assert together >= len(many), "their statuses are written together"
    assert len(scene.kafka.topics) >= len(many)
    scene.settle()
    conditions = [scene.resources.status(resource)["conditions"] for resource in many]
    assert all(("Ready", "True") in {(each["type"], each["status"]) for each in found} for found in conditions)
