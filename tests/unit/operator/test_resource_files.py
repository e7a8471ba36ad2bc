"""The names of the files of resources, and what they say of them."""

import pytest

from kavka_operator.api.kinds import Key
from kavka_operator.platform.local.resource_files import ResourceFiles, by_kind

FILES = ResourceFiles("default")


@pytest.mark.parametrize(
    ("key", "name"),
    [
        (("KafkaCluster", "default", "main"), "kafkacluster.main.yaml"),
        (("Topic", "default", "orders.v2"), "topic.orders.v2.yaml"),
        (("ClientQuota", "teams", "clicks"), "clientquota.clicks@teams.yaml"),
    ],
)
def test_a_file_is_named_after_its_resource(key: Key, name: str) -> None:
    assert FILES.name_of(key) == name
    assert FILES.key_in(name) == key


def test_a_kind_of_another_version_keeps_its_name() -> None:
    assert FILES.key_in("mirror.orders.yaml") == ("mirror", "default", "orders")


def test_clusters_come_first_and_unknown_kinds_last() -> None:
    names = ["mirror.a.yaml", "topic.b.yaml", "topic.a.yaml", "kafkacluster.z.yaml"]
    assert sorted(names, key=by_kind) == ["kafkacluster.z.yaml", "topic.a.yaml", "topic.b.yaml", "mirror.a.yaml"]
