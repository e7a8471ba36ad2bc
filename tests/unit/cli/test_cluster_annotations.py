"""`kavka approve`, `hold` and `release` on the local store, and which place a command speaks to."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from kavka_cli.output import CommandError
from kavka_cli.resource_store import KubernetesResources, LocalResources, StoreOptions, open_store
from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.api.cluster_status import RolloutStatus
from kavka_operator.platform.local.layout import Layout
from kavka_operator.platform.local.store import Store
from kavka_operator.reconcile.rollout.restart import RESTART
from kavka_operator.reconcile.rollout.roll import APPROVE, HOLD_NODES
from tests.unit.cli.test_kubeconfig import written
from tests.unit.operator.person import Person


@pytest.fixture
def person(tmp_path: Path) -> Person:
    """A person with a cluster that was applied."""
    typing = Person(tmp_path)
    assert typing.types("apply", "-f", typing.file())[0] == 0
    return typing


def store(person: Person) -> Store:
    (root,) = (person.directory / "state").glob("*/*")
    return Store(Layout.of(person.directory / "state", root.parent.name, root.name))


def cluster(person: Person) -> KafkaCluster:
    (found,) = (resource for resource in store(person).all() if isinstance(resource, KafkaCluster))
    return found


def wait_for_approval(person: Person, plan: str) -> None:
    """Note a roll that waits, as a running cluster does."""
    wanted = cluster(person)
    waits = RolloutStatus(
        plan=plan,
        progress="0/1",
        done=0,
        total=1,
        current=(),
        blocked_by=("approval",),
        at_risk=("orders-0",),
        blocked_since=datetime(2026, 11, 23, tzinfo=UTC),
    )
    store(person).set_status(wanted, wanted.status.replaced({"rollout": waits}))


def test_a_restart_is_asked_for_by_an_annotation(person: Person) -> None:
    code, said = person.types("restart")
    assert (code, "restarts: see `kavka get kvc`" in said) == (0, True)
    moment = datetime.fromisoformat(cluster(person).metadata.annotations[RESTART])
    assert moment.tzinfo is not None
    assert person.types("restart", "nowhere")[0] == 1


def test_a_roll_that_waits_is_approved_by_its_hash(person: Person) -> None:
    before = cluster(person).metadata.generation
    code, said = person.types("approve")
    assert code == 1
    assert "no roll is on, so there is nothing to approve" in said
    wait_for_approval(person, "0123456789ab")
    code, said = person.types("approve", "--plan", "ffffffffffff")
    assert code == 1
    assert "the roll that is on is 0123456789ab, not ffffffffffff" in said
    code, said = person.types("approve")
    assert code == 0
    assert "at risk while nodes restart: orders-0" in said
    assert cluster(person).metadata.annotations == {APPROVE: "0123456789ab"}
    assert cluster(person).metadata.generation == before + 1


def test_nodes_are_held_and_released(person: Person) -> None:
    steps = [
        (("hold", "--nodes", "2"), "2"),
        (("hold", "--nodes", "1"), "1,2"),
        (("release", "--nodes", "2"), "1"),
        (("hold",), "all"),
        (("hold", "--nodes", "1"), "all"),
        (("release",), None),
        (("release",), None),
    ]
    for words, held in steps:
        code, said = person.types(*words)
        assert code == 0, said
        assert cluster(person).metadata.annotations.get(HOLD_NODES) == held


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("hold", "--nodes", "x"), '--nodes: "x" is no id of a node'),
        (("hold", "other"), 'there is no KafkaCluster "other" in namespace "default" of local clusters in '),
        (("hold", "-n", "elsewhere"), 'there is none in namespace "elsewhere"'),
        (("get", "--kubeconfig", "nowhere"), "--state-dir is for local clusters"),
    ],
)
def test_what_cannot_be_meant_is_named(person: Person, words: tuple[str, ...], said: str) -> None:
    code, answer = person.types(*words)
    assert code == 1
    assert said in answer


def test_local_clusters_come_first_and_otherwise_a_kubeconfig_that_is_there(
    person: Person, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("KAVKA_STATE_DIR", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "config"))
    state = StoreOptions(state=person.directory / "state")
    assert isinstance(open_store(state), LocalResources)
    assert isinstance(open_store(StoreOptions()), LocalResources)  # nothing is known of any Kubernetes
    with pytest.raises(CommandError, match="there is no kubeconfig at"):
        open_store(StoreOptions(is_kubernetes=True))
    written(tmp_path / "config")
    assert isinstance(open_store(state), LocalResources)
    assert capsys.readouterr().err == ""
    found = open_store(StoreOptions())
    assert isinstance(found, KubernetesResources)
    assert found.namespace == "kafka"
    assert 'no local cluster is known, so this is Kubernetes, context "prod"' in capsys.readouterr().err
