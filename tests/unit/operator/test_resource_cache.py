"""What the watch has seen: the newest version wins, in whatever order the news comes; only what is wanted wakes."""

from typing import Any

import pytest

from kavka_operator.platform.kubernetes.live.resource_cache import ClusterKey, Objects

MAIN, OTHER = ("default", "main"), ("default", "other")


def document(kind: str, name: str, version: int, *, uid: str = "u", cluster: str = "main", **parts: Any) -> Any:
    metadata = {"name": name, "namespace": "default", "uid": uid, "resourceVersion": str(version), "managedFields": [1]}
    spec = {} if kind == "KafkaCluster" else {"clusterRef": {"name": cluster}}
    return {"kind": kind, "metadata": {**metadata, **parts.pop("metadata", {})}, "spec": spec, **parts}


class Seen:
    """Objects, and the clusters that were woken."""

    def __init__(self) -> None:
        self.woken = list[ClusterKey]()
        self.objects = Objects(self.woken.append)
        self.objects.open()

    def versions(self, cluster: ClusterKey = MAIN) -> list[tuple[str, str]]:
        return [(each["metadata"]["name"], each["metadata"]["resourceVersion"]) for each in self.objects.of(cluster)]


@pytest.fixture
def seen() -> Seen:
    return Seen()


def test_the_cluster_comes_first_and_field_managers_are_left_out(seen: Seen) -> None:
    seen.objects.take(document("ClientQuota", "a", 1))
    seen.objects.take(document("KafkaCluster", "main", 2))
    assert seen.versions() == [("main", "2"), ("a", "1")]
    assert "managedFields" not in seen.objects.of(MAIN)[0]["metadata"]


def test_a_status_wakes_nobody_and_a_change_of_what_is_wanted_does(seen: Seen) -> None:
    seen.objects.take(document("Topic", "a", 1))
    before = seen.objects.stamp(MAIN)
    seen.objects.take(document("Topic", "a", 2, status={"partitions": 3}))
    assert (seen.woken, seen.objects.stamp(MAIN)) == ([MAIN], before)
    for change in ({"generation": 2}, {"deletionTimestamp": "now"}, {"annotations": {"a": "b"}}):
        version = int(seen.versions()[0][1]) + 1
        seen.objects.take(document("Topic", "a", version, metadata=change))
    assert len(seen.woken) == 4


def test_an_answer_to_a_write_is_not_overtaken_by_older_news(seen: Seen) -> None:
    seen.objects.take(document("Topic", "a", 7, status={"partitions": 3}))
    seen.objects.take(document("Topic", "a", 5))
    assert seen.versions() == [("a", "7")]
    seen.objects.take(document("Topic", "a", 2, uid="another"))
    assert seen.versions() == [("a", "2")], "it was made again under the same name"


def test_what_is_gone_is_forgotten_unless_another_has_its_name(seen: Seen) -> None:
    seen.objects.take(document("Topic", "a", 7, uid="new"))
    seen.objects.drop(("Topic", "default", "a"), "old")
    assert seen.versions() == [("a", "7")]
    seen.objects.drop(("Topic", "default", "a"), "new")
    assert seen.objects.clusters() == []
    assert seen.woken == [MAIN, MAIN]


def test_a_resource_that_goes_to_another_cluster_wakes_both(seen: Seen) -> None:
    seen.objects.take(document("Topic", "a", 1))
    seen.objects.take(document("Topic", "a", 2, cluster="other", metadata={"generation": 2}))
    assert (seen.versions(), seen.versions(OTHER)) == ([], [("a", "2")])
    assert seen.woken == [MAIN, MAIN, OTHER]


def test_a_list_forgets_what_it_lacks_but_not_what_is_younger(seen: Seen) -> None:
    seen.objects.take(document("Topic", "missed", 3, uid="1"))
    seen.objects.take(document("Topic", "there", 4, uid="2"))
    seen.objects.take(document("Topic", "younger", 11, uid="3"))
    seen.objects.take(document("KafkaCluster", "main", 2, uid="4"))
    seen.objects.keep_only("Topic", None, ["2"], "10")
    assert [name for name, _ in seen.versions()] == ["main", "there", "younger"]
    seen.objects.keep_only("Topic", "elsewhere", [], "20")
    assert len(seen.versions()) == 3


def test_a_cluster_is_there_while_its_own_resource_is(seen: Seen) -> None:
    seen.objects.take(document("Topic", "a", 1))
    assert not seen.objects.has_cluster(MAIN)
    seen.objects.take(document("KafkaCluster", "main", 2))
    assert seen.objects.has_cluster(MAIN)


def test_nobody_is_woken_before_all_is_known() -> None:
    woken = list[ClusterKey]()
    objects = Objects(woken.append)
    objects.take(document("Topic", "a", 1))
    objects.take(document("Topic", "b", 2, cluster="other"))
    assert woken == []
    objects.open()
    assert woken == [MAIN, OTHER]


def test_what_is_gone_does_not_come_back_with_an_answer_from_before(seen: Seen) -> None:
    seen.objects.take(document("Topic", "a", 5, uid="old"))
    seen.objects.drop(("Topic", "default", "a"), "old")
    seen.objects.take(document("Topic", "a", 6, uid="old"))
    assert seen.objects.clusters() == [], "the answer to a write has come after the news of the deletion"
    seen.objects.take(document("Topic", "a", 9, uid="new"))
    seen.objects.take(document("Topic", "a", 6, uid="old"))
    assert seen.versions() == [("a", "9")]


def test_as_many_as_a_bound_are_remembered_to_be_gone(seen: Seen) -> None:
    seen.objects.gone_max = 2
    for uid in ("1", "2", "3"):
        seen.objects.drop(("Topic", "default", "a"), uid)
    for uid in ("1", "2", "3"):
        seen.objects.take(document("Topic", uid, 1, uid=uid))
    assert [name for name, _ in seen.versions()] == ["1"]


def test_nothing_is_kept_of_clusters_that_nothing_is_about_and_their_stamps_never_come_again(seen: Seen) -> None:
    for number in range(3):
        seen.objects.take(document("Topic", "a", 2 * number + 1, uid="1", cluster=f"c{number}"))
    before = seen.objects.stamp(("default", "c2"))
    seen.objects.drop(("Topic", "default", "a"), "1")
    assert (seen.objects.keys, seen.objects.stamps) == ({}, {})
    assert seen.objects.stamp(("default", "c2")) == 0
    seen.objects.take(document("Topic", "a", 9, uid="2", cluster="c2"))
    assert seen.objects.stamp(("default", "c2")) > before > 0


def test_more_objects_than_there_is_room_for_are_left_out_and_counted(seen: Seen) -> None:
    seen.objects.objects_max = 1
    seen.objects.take(document("Topic", "a", 1))
    seen.objects.take(document("Topic", "b", 2))
    seen.objects.take(document("Topic", "a", 3))
    assert (seen.versions(), seen.objects.omitted) == ([("a", "3")], 1)
