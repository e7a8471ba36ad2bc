"""Apache Kafka's own compiled tests on Kavka: the sample in every run, each other story when it is its turn.

`python -m tests.conformance.kafka_own` (or `make kafka-tests`) plays all of the list, and with `--product both` Apache
Kafka beside it. `allow_list.py` says what is left out, and why.
"""

import re
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.conformance.kafka_own.allow_list import ABSENT, CLASSES, STORIES, OwnTests
from tests.conformance.kafka_own.not_played import NOT_PLAYED
from tests.conformance.kafka_own.runs import Case, Run, run
from tests.conformance.kafka_own.verdicts import complaints, pattern, table
from tools.kafka_jars import class_path_of_tests

pytestmark = [pytest.mark.java, pytest.mark.slow]

PACKAGE = "Lorg/apache/kafka/common/test/api"
ANNOTATIONS = [f"{PACKAGE}/{name};".encode() for name in ("ClusterTest", "ClusterTests", "ClusterTemplate")]


def play(story: str, directory: Path) -> None:
    """Run the classes of a story in one JVM, and see that they end as the allow list says."""
    classes = STORIES[story]
    ran = run([one.name for one in classes], directory, left_out=pattern(classes))
    wrong = complaints(ran, classes)
    assert not wrong, "\n".join([*wrong, *table(ran), f"logs: {directory}"])


def test_the_sample(tmp_path: Path) -> None:
    play("sample", tmp_path)


def test_transactions(tmp_path: Path) -> None:
    play("transactions", tmp_path)


def test_producers(tmp_path: Path) -> None:
    play("producers", tmp_path)


def test_consumers(tmp_path: Path) -> None:
    play("consumers", tmp_path)


def test_metadata(tmp_path: Path) -> None:
    play("metadata", tmp_path)


def test_plain_consumers(tmp_path: Path) -> None:
    play("plain consumers", tmp_path)


def test_consumers_in_groups(tmp_path: Path) -> None:
    play("consumers in groups", tmp_path)


def test_administration(tmp_path: Path) -> None:
    play("administration", tmp_path)


def test_new_groups(tmp_path: Path) -> None:
    play("new groups", tmp_path)


def test_migration(tmp_path: Path) -> None:
    play("migration", tmp_path)


def test_groups(tmp_path: Path) -> None:
    play("groups", tmp_path)


def test_tools(tmp_path: Path) -> None:
    play("tools", tmp_path)


def test_consumer_tools(tmp_path: Path) -> None:
    play("consumer tools", tmp_path)


def test_offsets(tmp_path: Path) -> None:
    play("offsets", tmp_path)


def test_rights(tmp_path: Path) -> None:
    play("rights", tmp_path)


def test_each_class_of_the_jars_is_named_once() -> None:
    named = [*(one.name for one in CLASSES), *ABSENT, *NOT_PLAYED]
    assert sorted(set(named)) == sorted(named)
    classes = classes_of_tests()
    assert set(named) <= classes.keys()
    assert {name for name, is_for_clusters in classes.items() if is_for_clusters} <= set(named)


def classes_of_tests() -> dict[str, bool]:
    """The classes of the jars of tests, and whether they are written for Apache Kafka's ClusterTest."""
    found = {}
    for jar in Path(class_path_of_tests()).parent.glob("*-test.jar"):
        with ZipFile(jar) as opened:
            for name in opened.namelist():
                if name.endswith(".class") and "$" not in name:
                    code = opened.read(name)
                    found[name.removesuffix(".class").replace("/", ".")] = any(one in code for one in ANNOTATIONS)
    return found


def test_what_a_class_leaves_out_another_plays() -> None:
    one, another = (OwnTests(f"kafka.server.{name}", 1) for name in ("OneTest", "AnotherTest"))
    left_out = re.compile(pattern([OwnTests(one.name, 1, {"testIt ": "for a reason"}), another]))
    assert left_out.search("OneTest.testIt [1] Type=Raft-Isolated")
    assert not left_out.search("AnotherTest.testIt [1] Type=Raft-Isolated")
    assert not left_out.search("OneTest.testItAgain [1] Type=Raft-Isolated")


def test_a_case_that_fails_or_is_lacking_is_told() -> None:
    (entry, *_) = STORIES["sample"]
    cases = [Case(entry.name, "testIt", f"[{n}] Type=Raft-Isolated", "passed", 1.0, "") for n in range(entry.passes)]
    assert complaints(Run("kavka", cases, has_ended=True, logs=Path(), nodes=2), [entry]) == []
    assert complaints(Run("kavka", cases, has_ended=True, logs=Path()), [entry]) == [
        "kavka: no node of it was started: ."
    ]
    failed = Case(entry.name, "testIt", "[1] Type=Raft-Isolated", "failed", 1.0, "expected: <1> but was: <2>\\n at")
    few = Run("kavka", [failed, *cases[1:]], has_ended=False, logs=Path(), nodes=2)
    assert [one.removeprefix(f"kavka {entry.name}") for one in complaints(few, [entry])] == [
        ".testIt [1] Type=Raft-Isolated: expected: <1> but was: <2>",
        "kavka: the run was cut off: .",
        f": {entry.passes - 1} cases passed, the allow list says {entry.passes}",
    ]
