"""`kavka plan`: what it prints for local clusters and its exit codes, and how fields and patches are found."""

import contextlib
import io
import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import pytest

from kavka_cli.commands import plan
from kavka_cli.dry_run import Foreseen
from kavka_cli.field_changes import field_changes
from kavka_cli.kubernetes.server_dry_run import LAST_APPLIED, applier_of, merge_patch
from kavka_cli.plan_text import Planned, as_json, as_text
from kavka_operator.reconcile.impact import Emptied, Forecast
from kavka_operator.reconcile.pause import PAUSE
from tests.unit.operator.fakes import FakeKafka
from tests.unit.operator.person import Person
from tests.unit.operator.test_local_pieces import FILE

NOTHING, REFUSED, SOMETHING = 0, 1, 2


@pytest.fixture
def person(tmp_path: Path) -> Person:
    return Person(tmp_path)


@pytest.fixture
def kafka() -> FakeKafka:
    """A Kafka that answers for a cluster that is said to run."""
    return FakeKafka()


def plans(person: Person, kafka: FakeKafka, *words: str) -> tuple[int, str]:
    """Exit code and output of `kavka plan` for a cluster that runs."""
    parser, said = ArgumentParser(), io.StringIO()
    plan.add_options(parser)
    options = parser.parse_args([*words, "--state-dir", str(person.directory / "state")])
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        code = plan.run(options, lambda _: contextlib.nullcontext((kafka, {})))
    return code, said.getvalue()


def test_a_cluster_that_does_not_run_tells_the_fields(person: Person) -> None:
    person.types("apply", "-f", person.file())
    assert person.types("plan", "-f", person.file()) == (
        NOTHING,
        "kafkacluster.kavka.dev/main unchanged\ntopic.kavka.dev/orders unchanged\n2 unchanged, 0 restarts\n",
    )
    code, said = person.types("plan", "-f", person.file(FILE.replace("partitions: 3", "partitions: 6")))
    assert (code, said.splitlines()[1:3]) == (
        SOMETHING,
        ["topic.kavka.dev/orders configured", "  spec.partitions: 3 -> 6"],
    )
    assert "  not known: the cluster does not run" in said


def test_a_cluster_that_runs_tells_what_it_would_do(person: Person, kafka: FakeKafka) -> None:
    person.types("apply", "-f", person.file())
    kafka.make("orders", partitions=3)
    changed = person.file(FILE.replace("partitions: 3", "partitions: 6"))
    code, said = plans(person, kafka, "-f", changed)
    assert (code, '  does: add partitions to topic "orders", to have 6' in said) == (SOMETHING, True), said
    code, said = plans(person, kafka, "-f", changed, "-o", "json")
    told = json.loads(said)
    assert (code, told["exitCode"]) == (SOMETHING, SOMETHING)
    assert told["resources"][1]["fields"] == [{"path": "spec.partitions", "was": 3, "willBe": 6}]
    assert kafka.writes == []


@pytest.mark.parametrize(
    ("plain", "annotated"),
    [("{name: main}", "{{name: main, annotations: {{{0}: soon}}}}"), ("note: hello", "note: hello, {0}: soon")],
    ids=["its KafkaCluster", "itself"],
)
def test_what_is_paused_waits(person: Person, kafka: FakeKafka, plain: str, annotated: str) -> None:
    paused = FILE.replace(plain, annotated.format(PAUSE), 1)
    person.types("apply", "-f", person.file(paused))
    kafka.make("orders", partitions=3)
    code, said = plans(person, kafka, "-f", person.file(paused.replace("partitions: 3", "partitions: 6")))
    assert code == SOMETHING
    waits = f'  waits: paused by {PAUSE}; held back: add partitions to topic "orders", to have 6'
    assert [line for line in said.splitlines() if "orders" in line][1:] == [waits], said


def test_what_would_be_refused_has_the_exit_code_of_a_refusal(person: Person, kafka: FakeKafka) -> None:
    person.types("apply", "-f", person.file())
    kafka.make("orders", partitions=9)
    code, said = plans(person, kafka, "-f", person.file(FILE.replace("partitions: 3", "partitions: 6")))
    assert (code, "  refused: Refused: the topic has 9 partitions" in said) == (REFUSED, True), said
    assert plans(person, kafka, "-f", person.file(FILE.replace("partitions: 3", "partitions: 0")))[0] == REFUSED
    assert plans(person, kafka) == (REFUSED, "error: name a resource file: kavka plan -f FILE\n")


@pytest.mark.parametrize(
    ("replicas", "size", "copied"),
    [(36, 3 << 30, " (36 replicas, 3.0 GiB)"), (1, None, " (1 replica)"), (None, None, "")],
)
def test_a_pool_that_restarts_empty_says_how_it_comes_back(replicas: int | None, size: int | None, copied: str) -> None:
    nodes = Forecast(empties=(Emptied("brokers", (100, 101), replicas, size),))
    planned = Planned(("KafkaCluster", "default", "ci"), "configured", foreseen=Foreseen(nodes=nodes))
    (line,) = [line for line in as_text([planned]) if "empties" in line]
    assert line.startswith(
        "  empties: nodes 100, 101, as storage of pool brokers ends with the pod (type: Ephemeral); "
    )
    assert "until no record counts on its broker alone" in line
    assert line.endswith(f"copies the replicas again from other brokers{copied}")
    (told,) = json.loads(as_json([planned]))["resources"]
    assert told["nodes"]["empties"] == [{"pool": "brokers", "nodes": [100, 101], "replicas": replicas, "bytes": size}]


def spec(**fields: Any) -> dict[str, Any]:
    return {"metadata": {"name": "x", "uid": "u"}, "spec": fields}


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (spec(a=1), spec(a=1), []),
        (spec(a=1), spec(a=2), [("spec.a", 1, 2)]),
        (spec(a=1), spec(), [("spec.a", 1, None)]),
        (spec(), spec(config={}), [("spec.config", None, {})]),
        (spec(config={"a.b": 1}), spec(config={"a.b": "1"}), [("spec.config[a.b]", 1, "1")]),
        (
            spec(pools=[{"name": "p", "replicas": 1}, {"name": "q", "replicas": 1}]),
            spec(pools=[{"name": "q", "replicas": 2}, {"name": "p", "replicas": 1}]),
            [("spec.pools[q].replicas", 1, 2)],
        ),
        (spec(racks=["a", "b"]), spec(racks=["b", "a"]), [("spec.racks", ["a", "b"], ["b", "a"])]),
        (spec(entity={"user": "x"}), spec(entity="x"), [("spec.entity", {"user": "x"}, "x")]),
        (None, spec(a={"b": 1}), [("spec.a.b", None, 1)]),
        (
            {"metadata": {"annotations": {LAST_APPLIED: "{}"}}},
            {"metadata": {"annotations": {LAST_APPLIED: "{1}", "x": "y"}}},
            [("metadata.annotations.x", None, "y")],
        ),
    ],
)
def test_fields_are_compared_by_name(
    before: dict[str, Any] | None, after: dict[str, Any], told: list[tuple[str, Any, Any]]
) -> None:
    assert [(change.path, change.was, change.will_be) for change in field_changes(before, after)] == told


def test_a_patch_takes_out_what_was_written_before_and_leaves_what_others_wrote() -> None:
    last = spec(config={"a": 1, "b": 2}, partitions=3)
    stored = {"metadata": {"annotations": {LAST_APPLIED: json.dumps(last)}}}
    assert merge_patch(stored, spec(config={"a": 1}))["spec"] == {"config": {"a": 1, "b": None}, "partitions": None}
    assert merge_patch({}, spec(a=1)) == spec(a=1)
    broken = {"metadata": {"annotations": {LAST_APPLIED: "no json"}}}
    assert merge_patch(broken, spec(a=1)) == spec(a=1)


def test_the_manager_that_applies_the_spec_is_found() -> None:
    def entry(manager: str, operation: str = "Apply", fields: str = "f:spec", **others: str) -> dict[str, Any]:
        return {"manager": manager, "operation": operation, "fieldsV1": {fields: {}}, **others}

    entries = [entry("edit", "Update"), entry("kavka", fields="f:status", subresource="status"), entry("flux")]
    assert applier_of({"metadata": {"managedFields": entries}}) == "flux"
    assert applier_of({"metadata": {"managedFields": entries[:2]}}) is None
