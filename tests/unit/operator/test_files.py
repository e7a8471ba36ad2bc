"""Resource files: each file in `bad/` has one fault, and its first line says which, in the exact words.

`# LINE: the rest of the message`, where FILE in it stands for the file's own path.
"""

import io
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.api.files import BadResourcesError, load
from kavka_operator.api.kinds import key_of
from kavka_operator.api.yaml_lines import documents
from tests.unit.operator.fakes import quota, topic

BAD = sorted((Path(__file__).parent / "bad").glob("*.yaml"))
ALONE = {"quickstart", "kubernetes"}  # the others are about the cluster of the first
EXAMPLES = sorted((Path(__file__).parents[3] / "examples").glob("*.yaml"))
GOOD = """
apiVersion: kavka.dev/v1alpha1
kind: KafkaCluster
metadata: {name: main}
spec: {nodePools: [{name: nodes}]}
"""


def faults(*paths: Path, known: object = None) -> list[str]:
    with pytest.raises(BadResourcesError) as refused:
        load(paths, known)  # type: ignore[arg-type]
    return [str(fault) for fault in refused.value.faults]


@pytest.mark.parametrize("path", BAD, ids=lambda path: path.stem)
def test_a_fault_names_file_line_resource_field_and_fix(path: Path) -> None:
    expected = path.read_text().splitlines()[0].removeprefix("# ").replace("FILE", str(path))
    assert faults(path)[0] == f"{path}:{expected}"
    assert len(faults(path)) == 1


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_examples_are_good(path: Path) -> None:
    load([path] if path.stem in ALONE else [path, path.with_name("quickstart.yaml")])


def test_every_fault_of_every_file_is_reported(tmp_path: Path) -> None:
    first, second = tmp_path / "a.yaml", tmp_path / "b.yaml"
    first.write_text("kind: Nonsense\n---\nkind: Worse\n")
    second.write_text("[1]\n")
    assert [line.rsplit(": ", 1)[0].split(":")[1] for line in faults(first, second)] == ["1", "3", "1"]


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    assert faults(tmp_path / "none.yaml") == [f"{tmp_path}/none.yaml: cannot be read: no such file or directory"]


def test_a_file_that_is_not_text(tmp_path: Path) -> None:
    path = tmp_path / "binary.yaml"
    path.write_bytes(b"\xff\xfe\x00")
    assert faults(path)[0].startswith(f"{path}:1: is not UTF-8 text")


LEVELS = "".join(
    f"{name}: &{name} [{', '.join(9 * [f'*{former}'])}]\n" for former, name in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        (f"a: &a [{', '.join(9 * ['x'])}]\n{LEVELS}", 1, "aliases repeat this and others, more than 100000 values"),
        (f"a: &a [{', '.join(9 * ['x'])}]\n{LEVELS}? *i\n: 1\n", 1, "aliases repeat this and others"),
        ("? [a]\n: 1\n", 1, "a key is a map or a list; write text"),
        ("a: 1\nb: 'x\0y'\n", 2, "is not YAML: it holds the control character U+0000; take it out"),
        ("a: 1\nb: 2\nc: '\x1b[0m'\n", 3, "is not YAML: it holds the control character U+001B; take it out"),
    ],
    ids=["aliases", "aliases in a key", "a list as a key", "NUL", "escape"],
)
def test_a_text_that_would_be_endless_or_is_none_is_refused_with_its_line(
    tmp_path: Path, text: str, line: int, words: str
) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(text)
    (fault,) = faults(path)
    assert fault.startswith(f"{path}:{line}: {words}")


def test_an_alias_that_is_used_often_is_no_fault(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    topics = "".join(f"- {{spec: *t, metadata: {{name: t{number}}}}}\n" for number in range(100))
    path.write_text(f"kind: List\nt: &t {{apiVersion: v1}}\nitems:\n{topics}")
    assert len(faults(path)) == 100


def test_each_item_of_a_large_list_has_its_own_lines() -> None:
    """Also in a text with very many items, of which each would have looked at the lines of all."""
    (document,) = documents("kind: List\nitems:\n" + "- {a: 1}\n" * 20_000 + "- {a: {b: 1}}\n")
    items = document.items()
    assert len(items) == 20_001
    assert [items[0].line(("a",)), items[9_999].line(("a",)), items[-1].line(("a", "b"))] == [3, 10_002, 20_003]


def test_clusters_come_first_and_status_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(
        "apiVersion: kavka.dev/v1alpha1\nkind: Topic\nmetadata: {name: t}\nspec: {clusterRef: {name: main}}\n"
        f"status: {{anything: 1}}\n---{GOOD}"
    )
    assert [each.resource.kind for each in load([path])] == ["KafkaCluster", "Topic"]


def test_numbers_in_settings_need_no_quotes(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(GOOD.replace("nodes}]}", 'nodes}], config: {num.partitions: 3, log.cleaner.enable: "true"}}'))
    (declared,) = load([path])
    assert isinstance(declared.resource, KafkaCluster)
    assert declared.resource.spec.config == {"num.partitions": "3", "log.cleaner.enable": "true"}


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("6.048e+08", "604800000"),
        ("6.048E8", "604800000"),
        ("5.0e9", "5000000000"),
        ("5e9", "5000000000"),
        ("604800000.0", "604800000"),
        ("1.024e+08", "102400000"),
    ],
)
def test_whole_numbers_are_taken_as_helm_writes_them(tmp_path: Path, written: str, value: str) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(GOOD.replace("nodes}]}", f"nodes}}], config: {{log.retention.ms: {written}}}}}"))
    (declared,) = load([path])
    assert isinstance(declared.resource, KafkaCluster)
    assert declared.resource.spec.config == {"log.retention.ms": value}


def test_a_fraction_is_its_text_and_what_is_no_number_is_refused(tmp_path: Path) -> None:
    path, name = tmp_path / "a.yaml", "log.cleaner.min.cleanable.ratio"
    path.write_text(GOOD.replace("nodes}]}", f"nodes}}], config: {{{name}: 0.50}}}}"))
    (declared,) = load([path])
    assert isinstance(declared.resource, KafkaCluster)
    assert declared.resource.spec.config == {name: "0.5"}
    for wrong, words in ((".inf", "inf is not a value; write a number"), (".nan", "nan is not a value")):
        path.write_text(GOOD.replace("nodes}]}", f"nodes}}], config: {{{name}: {wrong}}}}}"))
        assert words in faults(path)[0]
    path.write_text(GOOD.replace("nodes}]}", "nodes}], config: {log.retention.ms: 604800000.5}}"))
    assert '"604800000.5" is not a whole number; write digits only, without a unit' in faults(path)[0]


def test_what_exists_can_be_pointed_at_and_cannot_be_changed_at_will(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(GOOD)
    (cluster,) = load([path])
    known = {each.metadata.name: each for each in (topic("t", partitions=6, status={"partitions": 6}), quota("q"))}
    existing = {key_of(each): each for each in (*known.values(), cluster.resource)}
    changed = [
        {"kind": "Topic", "metadata": {"name": "t"}, "spec": {"clusterRef": {"name": "main"}, "partitions": 3}},
        {
            "kind": "ClientQuota",
            "metadata": {"name": "q"},
            "spec": {
                "clusterRef": {"name": "main"},
                "entity": {"user": {"name": "x"}},
                "limits": {"producerByteRate": 1},
            },
        },
    ]
    path.write_text(yaml.safe_dump_all({"apiVersion": "kavka.dev/v1alpha1", **each} for each in changed))
    assert [fault.split(": ", 2)[2] for fault in faults(path, known=existing)] == [
        "spec.partitions: partitions may only grow; to have fewer, create another topic and move the records",
        "spec.entity: entity is immutable; delete the resource and create another",
    ]


def test_roles_have_no_order(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(GOOD)
    (cluster,) = load([path])
    path.write_text(GOOD.replace("name: nodes", "name: nodes, roles: [controller, broker]"))
    assert load([path], {cluster.key: cluster.resource})


def test_an_older_file_names_what_is_to_be_deleted(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(yaml.safe_dump_all([yaml.safe_load(GOOD), topic("t", partitions=3).to_dict()]))
    known = {key_of(each): each for each in (topic("t", partitions=6, status={"partitions": 6}),)}
    assert faults(path, known=known)[0].endswith("create another topic and move the records")
    assert [each.key for each in load([path], known, is_change=False)][1:] == list(known)


def test_what_get_printed_can_be_applied(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    items = [yaml.safe_load(GOOD), topic("t", status={"partitions": 6}).to_dict()]
    path.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": items}))
    assert [each.resource.name for each in load([path])] == ["main", "t"]
    items[1]["spec"]["partitions"] = "three"
    path.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": items}))
    line = next(number for number, text in enumerate(path.read_text().splitlines(), 1) if "three" in text)
    assert faults(path)[0].startswith(f'{path}:{line}: Topic "t": spec.partitions: "three" is not')


def test_a_directory_stands_for_its_resource_files(tmp_path: Path) -> None:
    (tmp_path / "b.yaml").write_text(GOOD)
    (tmp_path / "a.json").write_text(json.dumps(topic("t").to_dict()))
    (tmp_path / "notes.txt").write_text("no resource")
    assert [each.resource.name for each in load([tmp_path])] == ["main", "t"]


def test_a_dash_stands_for_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(GOOD))
    (cluster,) = load([Path("-")])
    assert (cluster.resource.name, cluster.file) == ("main", "standard input")


def test_a_min_isr_above_the_replicas_is_taken_as_kafka_takes_it(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    alone = topic("t", replicationFactor=1, config={"min.insync.replicas": "2"})
    path.write_text(yaml.safe_dump_all([yaml.safe_load(GOOD), alone.to_dict()]))
    assert len(load([path])) == 2


@pytest.mark.parametrize(
    ("there", "before", "wanted", "is_kept"),
    [
        (None, 100_000, 10, True),
        (None, 100_000, None, True),
        (6, 100_000, 10, True),
        (6, 100_000, 5, False),
        (6, 6, None, False),
        (6, 3, 3, True),
        (6, None, 2, True),
        (6, 6, 7, True),
    ],
)
def test_partitions_that_were_never_made_may_be_taken_back(
    there: int | None, before: int | None, wanted: int | None, is_kept: bool
) -> None:
    old = topic(status={"partitions": there} if there else {}, **asked(before))
    new = topic(**asked(wanted))
    assert bool(list(new.forbidden_changes(old))) != is_kept


def asked(partitions: int | None) -> dict[str, Any]:
    return {"partitions": partitions} if partitions else {}
