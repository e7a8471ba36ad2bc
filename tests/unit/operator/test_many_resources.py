"""Thousands of resources: what is counted is how often files are parsed and the cluster is looked at, never time."""

import json
import os
from datetime import date
from pathlib import Path

import pytest
import yaml

from kavka_cli.apply_progress import Watch
from kavka_operator.api.files import load
from kavka_operator.api.kinds import AnyResource
from kavka_operator.api.stored_resources import Unreadable
from kavka_operator.api.topic import Topic
from kavka_operator.api.yaml_lines import YamlError, documents
from kavka_operator.domain.plan import Word, dated
from kavka_operator.loop.cluster_loop import ClusterLoop
from kavka_operator.platform.local import yaml_directory
from kavka_operator.platform.local.files import locked
from kavka_operator.platform.local.layout import Layout
from kavka_operator.platform.local.store import Store
from kavka_operator.platform.local.yaml_directory import parsed
from tests.unit.operator.fakes import NOW, FakeKafka, FakePlatform

TOPIC = """---
apiVersion: kavka.dev/v1alpha1
kind: Topic
metadata: {name: NAME}
spec: {clusterRef: {name: main}, partitions: 3}
"""
CLUSTER = """---
apiVersion: kavka.dev/v1alpha1
kind: KafkaCluster
metadata: {name: main}
spec: {nodePools: [{name: nodes}]}
"""


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    made = Layout.of(tmp_path, "default", "main")
    made.make()
    return made


def apply(store: Store, count: int) -> None:
    path = store.layout.root / "given.yaml"
    path.write_text(CLUSTER + "".join(TOPIC.replace("NAME", f"t{number}") for number in range(count)))
    store.apply(load([path]), NOW)


def test_each_file_is_parsed_once_and_a_status_alone_when_it_is_new(layout: Layout) -> None:
    parses: list[str] = []

    def noting(text: str) -> object:
        parses.append(text)
        return parsed(text)

    apply(Store(layout, noting), 20)
    assert parses == [], "there was nothing to read"
    store = Store(layout, noting)
    every = store.all()
    assert (len(every), len(parses)) == (21, 21)
    for each in every:
        if isinstance(each, Topic):
            store.set_status(each, each.status.replaced({"partitions": 3}))
    again = store.all()
    assert [each.status.partitions for each in again if isinstance(each, Topic)] == [3] * 20
    assert len(parses) == 41, "the 20 statuses; what is wanted is the same"
    assert (store.all() == again, len(parses)) == (True, 41)
    apply(Store(layout, noting), 20)
    assert len(parses) == 62, "to compare with what is wanted; nobody asks for the statuses"


def test_files_that_are_gone_are_forgotten(layout: Layout) -> None:
    store = Store(layout)
    apply(store, 3)
    store.all()
    (layout.resources / "topic.t1.yaml").unlink()
    assert [each.name for each in store.all()] == ["main", "t0", "t2"]
    assert store.read() == (store.all(), [])


def test_the_cluster_is_looked_at_once_all_of_a_change_is_written(layout: Layout) -> None:
    store, platform = Store(layout), FakePlatform()
    loop = ClusterLoop(store, platform, lambda *_: FakeKafka(), print, lambda: None, lambda: 10.0, lambda: NOW)
    apply(store, 1)
    os.utime(layout.resources, (1, 1))  # a file system may give two changes within 10 ms the same time
    assert asked(loop) == 1
    apply(store, 2)
    with locked(layout.root / "store.lock"):  # as another process does that has more to write
        assert asked(loop) is None
    assert asked(loop) == 2
    assert asked(loop) is None
    apply(store, 3)
    loop.hurry()
    with locked(layout.root / "store.lock"):
        assert asked(loop) == 3, "a look that is due waits for nobody"


def asked(loop: ClusterLoop) -> int | None:
    """The number of resources that a look would be about; None if none is due."""
    question = loop.due()
    return len(question.resources) if question is not None else None


def test_apply_reads_files_again_only_when_one_has_changed(layout: Layout) -> None:
    times, reads = iter([10.0, 10.1, 10.2, 10.3, 10.9, 11.9]), list[int]()

    class Counted(Store):
        def read(self) -> tuple[list[AnyResource], list[Unreadable]]:
            reads.append(1)
            return super().read()

    store = Counted(layout)
    apply(store, 2)
    reads.clear()
    keys = frozenset({("Topic", "default", "t0"), ("Topic", "default", "t1")})
    watch = Watch(store, keys, clock=lambda: next(times))
    assert [len(watch.pending()) for _ in range(3)] == [2, 2, 2]
    assert len(reads) == 1
    write_ready(store, "t0")
    os.utime(layout.status, (1, 1))
    reads.clear()
    assert [each.resource.name for each in watch.pending()] == ["t1"]
    assert (len(watch.pending()), len(reads)) == (1, 1)
    assert (len(watch.pending()), len(reads)) == (1, 2), "a second later, in any case"


def write_ready(store: Store, name: str) -> None:
    (one,) = (each for each in store.all() if isinstance(each, Topic) and each.name == name)
    ready = dated((Word("Ready", "True", "Ready", "as wanted"),), (), 1, NOW)
    store.set_status(one, one.status.replaced({"conditions": ready, "observed_generation": 1}))


def test_a_text_that_is_right_is_never_read_by_the_slow_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    if not hasattr(yaml, "CSafeLoader"):
        pytest.skip("PyYAML without its C parser")

    def refuse(text: str) -> object:
        raise AssertionError(text)

    monkeypatch.setattr(yaml, "SafeLoader", refuse)
    (first, second) = documents("a: {b: [1]}\n---\na: 2\n")
    assert (first.value, first.line(("a", "b", 0)), second.line(("a",))) == ({"a": {"b": [1]}}, 1, 3)


@pytest.mark.parametrize(
    "text",
    ["[" * 65 + "]" * 65, "[" * 100_000, "- " * 100_000 + "x", '{"a":' * 100_000, "a: &a [*a]", "a: [{b:" + "{" * 1000],
    ids=["brackets", "open brackets", "dashes", "braces", "an alias to itself", "what the C parser refuses before"],
)
def test_what_is_nested_without_end_is_refused_in_words(text: str) -> None:
    with pytest.raises(YamlError, match="is nested more than 64 deep"):
        list(documents(text))


def test_what_is_nested_as_deep_as_may_be_is_read() -> None:
    (one,) = documents("[" * 64 + "]" * 64)
    assert len(one.lines) == 64


def test_what_is_written_is_json_and_reads_as_yaml(layout: Layout) -> None:
    value = {"a": [1, 2.5, None, True], "b": {"name": "\u00e9\u4e2d\U0001f600: #"}}
    held = yaml_directory.Folder(layout.status)
    held.write("topic.a.yaml", value)
    text = (layout.status / "topic.a.yaml").read_text(encoding="utf-8")
    assert json.loads(text) == yaml.safe_load(text) == held.value("topic.a.yaml") == value


@pytest.mark.parametrize("value", [{"day": date(2026, 1, 2)}, {"a": {1: "one"}}, {"a": float("inf")}, {"a": "\ud800"}])
def test_what_json_cannot_say_is_read_as_it_was_written(layout: Layout, value: dict[str, object]) -> None:
    yaml_directory.Folder(layout.status).write("topic.a.yaml", value)
    assert yaml_directory.Folder(layout.status).value("topic.a.yaml") == value


def test_a_map_in_braces_need_not_be_json(layout: Layout) -> None:
    (layout.status / "topic.a.yaml").write_text("{name: a, spec: {partitions: 3}}\n", encoding="utf-8")
    assert yaml_directory.Folder(layout.status).value("topic.a.yaml") == {"name": "a", "spec": {"partitions": 3}}
