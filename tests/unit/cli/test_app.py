"""The command without a running cluster: what it keeps, what it refuses, and in which words."""

import contextlib
import io
import json
import os
import re
import subprocess
import sys
from argparse import ArgumentParser
from pathlib import Path

import pytest
import yaml

from kavka_cli import main
from kavka_cli.commands import get
from kavka_cli.resource_names import RESOURCES_HELP
from kavka_operator.api.kinds import KINDS
from tests.unit.operator.person import Person, run
from tests.unit.operator.test_local_pieces import FILE


@pytest.fixture
def person(tmp_path: Path) -> Person:
    return Person(tmp_path)


def test_get_and_down_say_that_there_is_nothing(person: Person) -> None:
    assert person.types("get") == (0, 'no resources in namespace "default"\n')
    assert person.types("down") == (
        1,
        'error: no cluster runs in namespace "default"; start one with `kavka up`\n',
    )
    assert person.types("explain", "quota")[0] == 1
    assert person.types("get", "kvt", "orders") == (1, 'error: there is no Topic "orders" in namespace "default"\n')


@pytest.mark.parametrize(
    ("words", "fix"),
    [
        (("log",), 'there is no command "log"; did you mean "logs"?'),
        (("audit", "ru"), 'there is no command "ru"; did you mean "run"?'),
        (("ps",), 'there is no command "ps"; `kavka --help` lists them'),
    ],
    ids=["a command", "of a group", "far from all"],
)
def test_a_word_that_is_no_command_is_answered_with_the_nearest_one(words: tuple[str, ...], fix: str) -> None:
    code, said = run(*words)
    assert (code, said.rstrip().endswith(f"error: {fix}")) == (2, True), said


def test_a_stopped_cluster_is_removed_without_its_name_where_it_is_the_only_one(person: Person) -> None:
    person.types("apply", "-f", person.file())
    code, said = person.types("down", "", "--volumes")
    assert (code, 'no KafkaCluster ""' in said) == (1, True), "an empty word names none"
    assert person.types("down", "--volumes") == (0, "kafkacluster.kavka.dev/main removed\n")
    for name in ("main", "second"):
        code, said = person.types("apply", "-f", person.file(FILE.replace("main", name).replace("orders", f"{name}s")))
        assert code == 0, said
    code, said = person.types("down", "--volumes")
    assert (code, said.startswith("error: no cluster runs in namespace")) == (1, True), said


@pytest.mark.parametrize("command", ["up", "apply"])
def test_a_state_directory_with_a_comma_is_refused_before_anything_is_written(tmp_path: Path, command: str) -> None:
    person = Person(tmp_path / "co,mma")
    person.directory.mkdir()
    file = person.file()
    code, said = person.types(command, "-f", file)
    assert (code, said.count("\n")) == (1, 1)
    assert "log.dirs cannot name a directory with a comma; choose another one by --state-dir" in said
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["co,mma", "file.yaml"]


def test_resources_are_kept_until_the_cluster_runs(person: Person) -> None:
    code, said = person.types("apply", "-f", person.file())
    assert (code, said.splitlines()) == (
        0,
        [
            "kafkacluster.kavka.dev/main created",
            "topic.kavka.dev/orders created",
            'KafkaCluster "main" is not running; `kavka up` will make it so',
        ],
    )
    assert person.types("apply", "-f", person.file())[1].splitlines()[:2] == [
        "kafkacluster.kavka.dev/main unchanged",
        "topic.kavka.dev/orders unchanged",
    ]
    assert person.types("get", "all", "-o", "name")[1].splitlines() == [
        "kafkacluster.kavka.dev/main",
        "topic.kavka.dev/orders",
    ]
    assert yaml.safe_load(person.types("get", "topics", "orders", "-o", "yaml")[1])["spec"]["partitions"] == 3
    assert '"kind": "List"' in person.types("get", "kvt", "-o", "json")[1]
    described = person.types("describe", "topic", "orders")[1]
    assert "partitions: 3" in described
    assert 'readers:\n  not told: KafkaCluster "main" is not running' in described
    assert "readers" not in person.types("describe", "topics")[1], "a cluster is asked for what is named alone"
    assert person.types("down", "main") == (0, "kafkacluster.kavka.dev/main is not running\n")
    assert person.types("down") == (0, "kafkacluster.kavka.dev/main is not running\n"), "no other one is known"
    assert person.types("delete", "kvt", "orders") == (
        0,
        "topic.kavka.dev/orders marked; it goes when the cluster runs\n",
    )


ANOTHER = """
---
apiVersion: kavka.dev/v1alpha1
kind: Topic
metadata: {name: flights}
spec: {clusterRef: {name: main}, partitions: 1}
"""


def test_get_takes_what_kubectl_get_takes(person: Person) -> None:
    person.types("apply", "-f", person.file(FILE + ANOTHER))

    def names(*words: str) -> list[str]:
        code, said = person.types("get", *words, "-o", "name")
        assert code == 0, said
        return [line.rpartition("/")[2] for line in said.splitlines()]

    assert names("kvt", "orders", "flights") == ["flights", "orders"]
    assert names("kvt/flights") == ["flights"]
    assert names("kvt/flights", "kvt/orders") == ["flights", "orders"]
    assert names("kvt,kvc") == ["main", "flights", "orders"]
    assert (
        person.types("get", "kvt", "flights", "nope")[1] == 'error: there is no Topic "nope" in namespace "default"\n'
    )
    assert person.types("get", "kvt/flights", "orders")[0] == 1
    assert yaml.safe_load(person.types("get", "kvt/flights", "-o", "yaml")[1])["kind"] == "Topic"
    head, first = person.types("get", "kvt", "-A")[1].splitlines()[:2]
    assert (head.split()[:2], first.split()[:2]) == (["NAMESPACE", "NAME"], ["default", "flights"])
    assert person.types("get", "kvt", "nope", "-A")[1] == 'error: there is no Topic "nope" in any namespace\n'


LABELLED = """
apiVersion: kavka.dev/v1alpha1
kind: Topic
metadata: {name: paid, labels: {team: a, stage: prod}}
spec: {clusterRef: {name: main}}
---
apiVersion: kavka.dev/v1alpha1
kind: Topic
metadata: {name: tried, labels: {team: a, stage: test, draft: "yes"}}
spec: {clusterRef: {name: main}}
"""


@pytest.mark.parametrize(
    ("selector", "names"),
    [
        ("team=a", ["paid", "tried"]),
        ("team==a,stage!=test", ["paid"]),
        ("stage in (test, none)", ["tried"]),
        ("stage notin (test)", ["main", "orders", "paid"]),
        ("draft", ["tried"]),
        ("!team", ["main", "orders"]),
        ("team=a , !draft", ["paid"]),
        ("team=b", []),
    ],
)
def test_get_selects_by_labels(person: Person, selector: str, names: list[str]) -> None:
    assert person.types("apply", "-f", person.file(f"{FILE}\n---{LABELLED}"))[0] == 0
    said = person.types("get", "-l", selector, "-o", "name")[1]
    assert sorted(line.rpartition("/")[2] for line in said.splitlines() if "/" in line) == names


@pytest.mark.parametrize("selector", ["=a", "team=a=b", "!team=a", "stage in test", "a b"])
def test_a_selector_that_makes_no_sense_is_refused(person: Person, selector: str) -> None:
    code, said = person.types("get", "-l", selector)
    assert (code, "is no selector" in said) == (1, True), said


def test_get_goes_on_and_prints_what_changes(person: Person) -> None:
    person.types("apply", "-f", person.file())
    turns = iter(
        (
            lambda: None,
            lambda: person.types("apply", "-f", person.file(f"{FILE}\n---{LABELLED}")),
            lambda: None,
        )
    )

    def pause(_: float) -> None:
        try:
            next(turns)()
        except StopIteration:
            raise KeyboardInterrupt from None

    parser, said = ArgumentParser(), io.StringIO()
    get.add_options(parser)
    options = parser.parse_args(["kvt", "-w", "-o", "name", "--state-dir", str(person.directory / "state")])
    with contextlib.redirect_stdout(said):
        code = get.run(options, pause)
    lines = said.getvalue().splitlines()
    assert (code, [line.rpartition("/")[2] for line in lines if line]) == (0, ["orders", "paid", "tried"])


def test_the_version_is_told() -> None:
    code, said = run("--version")
    assert code == 0
    assert re.fullmatch(r"kavka \d+\.\d+\.\d+\n", said)


def test_a_topic_for_a_cluster_that_exists_needs_no_other_file(person: Person) -> None:
    person.types("apply", "-f", person.file())
    other = person.file(FILE.split("---")[1].replace("orders", "more"))
    assert person.types("apply", "-f", other)[1].startswith("topic.kavka.dev/more created")


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("apply",), "name a resource file: kavka apply -f FILE"),
        (("up", "--brokers", "12"), "--brokers: 12 is not from 1 to 9; more of them want a resource file"),
        (("up", "--port", "70000"), "--port: 70000 is not from 0 to 64534"),
        (("up", "-f", "x", "--port", "1"), "--port is for `kavka up` without a file; write it into the resource"),
        (
            ("get", "pods"),
            'there is no kind "pods"; write kafkacluster (kvc), topic (kvt), clientquota (kvq), kafkauser (kvu) or all',
        ),
        (("top",), "top draws on a terminal, and this is none; kavka top --once prints its tables"),
        (("top", "-o", "json"), "--view and --output are of --once; the screen has keys for them"),
        (("delete", "kvt"), "name what to delete: kavka delete KIND NAME, or kavka delete -f FILE"),
        (("down", "main"), 'there is no KafkaCluster "main" in namespace "default"'),
    ],
)
def test_a_wrong_command_is_answered_with_the_right_one(person: Person, words: tuple[str, ...], complaint: str) -> None:
    assert person.types(*words) == (1, f"error: {complaint}\n")


def test_a_store_that_cannot_be_understood_gives_no_traceback(person: Person) -> None:
    person.types("apply", "-f", person.file())
    kept = person.directory / "state" / "default" / "main" / "resources"
    (kept / "topic.orders.yaml").write_text("{not: [yaml")
    (kept / "kafkacluster.main.yaml").write_text((kept / "kafkacluster.main.yaml").read_text() + "later: 5\n")
    for words in (("get",), ("get", "-o", "yaml"), ("get", "all", "-o", "wide"), ("describe", "kvc", "main")):
        code, said = person.types(*words)
        assert (code, "Traceback" in said) == (0, False), said
    assert "orders" in person.types("get", "kvt")[1]
    assert person.types("describe", "kvt", "orders")[0] == 0
    marked = "topic.kavka.dev/orders marked; it could not be understood, and what it has set in Kafka stays\n"
    assert person.types("delete", "kvt", "orders") == (0, marked)
    assert person.types("apply", "-f", person.file())[1].splitlines()[1] == "topic.kavka.dev/orders configured"


def test_a_cluster_is_not_deleted_with_its_records(person: Person) -> None:
    person.types("apply", "-f", person.file())
    code, said = person.types("delete", "kvc", "main")
    assert (code, "kavka down --volumes removes both" in said) == (1, True)


def test_every_fault_is_shown_and_counted(person: Person) -> None:
    bad = person.file(FILE.replace("partitions: 3", "partitions: 0, replicas: 1"))
    code, said = person.types("apply", "-f", bad)
    assert code == 1
    assert said.splitlines()[-1] == "nothing was applied: 2 errors"
    assert person.types("get")[1].startswith("no resources")


def test_up_runs_one_cluster(person: Person) -> None:
    two = person.file(FILE + "---" + FILE.split("---")[0].replace("main", "other"))
    code, said = person.types("up", "-f", two)
    assert (code, "2 KafkaClusters; `kavka up` runs one" in said) == (1, True)


def test_what_is_not_there_is_an_empty_list_for_a_program_and_a_note_for_a_person(
    person: Person, capsys: pytest.CaptureFixture[str]
) -> None:
    for output, read in (("json", json.loads), ("yaml", yaml.safe_load)):
        with pytest.raises(SystemExit) as ended:
            main(["get", "kvt", "-o", output, "--state-dir", str(person.directory / "state")])
        said = capsys.readouterr()
        assert (ended.value.code, said.err) == (0, 'no resources in namespace "default"\n')
        assert read(said.out) == {"apiVersion": "v1", "kind": "List", "items": []}


def test_the_help_names_every_kind() -> None:
    names = ", ".join(kind.kind_name.lower() for kind in KINDS.values())
    short = ", ".join(kind.short_name for kind in KINDS.values())
    assert f"kinds are {names} ({short}) and all." in RESOURCES_HELP


KAVKA = "from kavka_cli import main; main()"


def test_names_that_a_terminal_has_no_letters_for_are_escaped(person: Person) -> None:
    person.types("apply", "-f", person.file(FILE.replace("hello", "Zoë")))
    state = ("--state-dir", str(person.directory / "state"))
    for words, shown in (
        (("describe", "kvt", "orders"), '"Zo\\xEB"'),
        (("get", "kvt", "orders", "-o", "json"), '"Zo\\u00eb"'),
        (("delete", "kvt", "Zoë"), 'error: there is no Topic "Zo\\xeb"'),
    ):
        line = [sys.executable, "-c", KAVKA, *words, *state]
        env = {**os.environ, "PYTHONIOENCODING": "ascii"}
        done = subprocess.run(line, capture_output=True, text=True, check=False, env=env)
        assert shown in done.stdout + done.stderr
        assert "Traceback" not in done.stderr


@pytest.mark.parametrize("module", ["kavka_cli.app", "argparse", "yaml"])
def test_ctrl_c_while_it_imports_ends_it_without_a_traceback(module: str) -> None:
    code = f"""
import sys

class Interrupted:
    def find_spec(self, name, *_):
        if name == {module!r}:
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupted())
{KAVKA}
"""
    done = subprocess.run([sys.executable, "-c", code, "get"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_help_does_not_wait_for_what_it_does_not_need() -> None:
    code = (
        "import sys, kavka_cli.app\n"
        "print([name for name in ('kafka', 'confluent_kafka', 'kopf', 'yaml') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize(
    "words",
    [
        ("get", "-o", "name", "kvt", "orders"),
        ("get", "kvt", "-o", "name", "orders"),
        ("get", "kvt", "orders", "-o", "name"),
    ],
)
def test_options_stand_before_between_and_behind_the_words(person: Person, words: tuple[str, ...]) -> None:
    person.types("apply", "-f", person.file())
    assert person.types(*words) == (0, "topic.kavka.dev/orders\n")


@pytest.mark.parametrize(
    "words", [("get", "--no-such-option"), ("frobnicate",), ("get", "-o", "xml"), ("apply", "--dry-run=maybe"), ()]
)
def test_a_command_line_that_cannot_be_understood_exits_with_2(words: tuple[str, ...]) -> None:
    code, said = run(*words)
    assert (code, "usage: kavka" in said) == (2, True), said
