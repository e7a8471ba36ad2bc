"""Whose a topic or a principal is: from resources, and from a file, which wins."""

from pathlib import Path

import pytest

from kavka_audit_run.owners import labels_of
from kavka_cli.output import CommandError
from kavka_operator.api.files import load

RESOURCES = """\
apiVersion: kavka.dev/v1alpha1
kind: KafkaCluster
metadata: {name: main, labels: {owner: platform}}
spec: {nodePools: [{name: nodes, replicas: 1}]}
---
apiVersion: kavka.dev/v1alpha1
kind: Topic
metadata: {name: orders, labels: {team: a, owner: b}, annotations: {kavka.dev/owner: "The shop"}}
spec: {clusterRef: {name: main}, topicName: orders.v1, partitions: 1}
---
apiVersion: kavka.dev/v1alpha1
kind: ClientQuota
metadata: {name: alice, labels: {team: c}}
spec: {clusterRef: {name: main}, entity: {user: {name: alice}}, limits: {producerByteRate: 1Mi}}
---
apiVersion: kavka.dev/v1alpha1
kind: KafkaUser
metadata: {name: bob, labels: {team: e}}
spec: {clusterRef: {name: main}, authentication: {type: scram-sha-512}}
---
apiVersion: kavka.dev/v1alpha1
kind: ClientQuota
metadata: {name: everybody, labels: {team: d}}
spec: {clusterRef: {name: main}, entity: {user: {default: true}}, limits: {producerByteRate: 1Mi}}
"""


def told(rows: list[dict[str, object]]) -> set[tuple[object, ...]]:
    return {tuple(row[name] for name in ("kind", "name", "label", "value")) for row in rows}


def test_labels_come_from_resources_and_the_file_wins(tmp_path: Path) -> None:
    (tmp_path / "resources.yaml").write_text(RESOURCES)
    (tmp_path / "owners.yaml").write_text("topics: {orders.v1: {team: z}, 7: {team: 8}}\nprincipals:\n")
    resources = load([tmp_path / "resources.yaml"])
    assert told(labels_of([found.resource for found in resources], None, "owner, team")) == {
        ("cluster", "", "owner", "platform"),
        ("topic", "orders.v1", "owner", "The shop"),
        ("topic", "orders.v1", "team", "a"),
        ("principal", "User:alice", "team", "c"),
        ("principal", "User:bob", "team", "e"),
    }
    assert told(labels_of([found.resource for found in resources], tmp_path / "owners.yaml", "team")) == {
        ("topic", "orders.v1", "team", "z"),
        ("topic", "7", "team", "8"),
        ("principal", "User:alice", "team", "c"),
        ("principal", "User:bob", "team", "e"),
    }


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("topic: {}", "topic: it is none of"),
        ("[]", "the file: no map"),
        ("topics: [orders]", "topics: no map"),
        ("topics: {orders: shop}", "topics.orders: no map"),
        ("topics: {orders: {owner: [a]}}", "topics.orders.owner: no text"),
        ("principals: {a: {owner: }}", "principals.a.owner: no text"),
        ("{", "cannot be read"),
    ],
)
def test_a_file_that_makes_no_sense_is_refused_by_its_field(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "owners.yaml").write_text(text)
    with pytest.raises(CommandError, match=r"^--owners: .*" + words.replace(".", r"\.")):
        labels_of([], tmp_path / "owners.yaml", "owner")


def test_a_file_that_is_not_there_and_no_label_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="cannot be read"):
        labels_of([], tmp_path / "none.yaml", "owner")
    with pytest.raises(CommandError, match=r"^--by: "):
        labels_of([], None, " ,")
