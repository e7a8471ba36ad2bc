"""`kavka wait`: the goals, the words where a goal is not met, and how long it waits."""

import contextlib
import io
from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from kavka_cli.commands import wait
from kavka_cli.commands.wait import parse_goal
from kavka_cli.duration import parse_duration
from kavka_cli.output import CommandError
from kavka_operator.api.files import load
from kavka_operator.domain.moments import A_WEEK_SECONDS
from kavka_operator.domain.plan import Word, dated, reconciling
from kavka_operator.platform.local.files import Lock
from kavka_operator.platform.local.layout import Layout
from kavka_operator.platform.local.store import Store
from tests.unit.operator.fakes import NOW
from tests.unit.operator.person import Person
from tests.unit.operator.test_local_pieces import FILE

ALL_IS_WELL = (Word("Ready", "True", "Ready", "as wanted"),)


TIMED_OUT = "error: timed out waiting for the condition on"


@pytest.fixture
def person(tmp_path: Path) -> Person:
    person = Person(tmp_path)
    assert person.types("apply", "-f", person.file())[0] == 0
    return person


@pytest.fixture
def lock(person: Person) -> Iterator[Lock]:
    """What whoever runs the cluster holds."""
    lock = Lock(Layout.of(person.directory / "state", "default", "main").lock)
    assert lock.take()
    yield lock
    lock.release()


@pytest.fixture
def store(person: Person, lock: Lock) -> Store:
    """What is stored of a cluster that runs."""
    return Store(Layout.of(person.directory / "state", "default", "main"))


def say(store: Store, name: str, words: tuple[Word, ...], generation: int = 1) -> None:
    """What `kavka up` would have written of a resource."""
    (one,) = (each for each in store.all() if each.name == name)
    update = {"conditions": dated(words, (), generation, NOW), "observed_generation": generation}
    store.set_status(one, one.status.replaced(update))


def waits(person: Person, pause: Callable[[], object], *words: str) -> tuple[int, str]:
    """Exit code and output of `kavka wait`, with something that happens in each of its pauses."""
    parser, said = ArgumentParser(), io.StringIO()
    wait.add_options(parser)
    options = parser.parse_args([*words, "--state-dir", str(person.directory / "state")])
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        code = wait.run(options, lambda _: pause())
    return code, said.getvalue()


def test_ready_resources_are_not_waited_for(person: Person, store: Store) -> None:
    say(store, "main", ALL_IS_WELL)
    say(store, "orders", ALL_IS_WELL)
    met = "kafkacluster.kavka.dev/main condition met\ntopic.kavka.dev/orders condition met\n"
    assert person.types("wait", "--for=condition=Ready", "kafkacluster/main", "topic/orders") == (0, met)
    assert person.types("wait", "--for=condition=ready=true", "-f", person.file()) == (0, met)
    assert person.types("wait", "--for", "condition=Ready", "all", "--all", "--timeout", "0") == (0, met)
    assert person.types("wait", "kvt", "-l", "!team", "--for=jsonpath={.spec.partitions}=3")[0] == 0


def test_a_resource_that_is_not_ready_in_time_is_named_with_its_reason(person: Person, store: Store) -> None:
    say(store, "orders", reconciling("WaitingForBrokers", "1 of 3 brokers have joined"))
    assert person.types("wait", "--for=condition=Ready", "kvt/orders", "kvc/main", "--timeout=0s") == (
        1,
        f"""\
{TIMED_OUT} kafkacluster.kavka.dev/main: not looked at yet
{TIMED_OUT} topic.kavka.dev/orders: Ready is False: WaitingForBrokers: 1 of 3 brokers have joined
""",
    )
    assert person.types("wait", "--for=condition=Reconciling", "kvt/orders", "--timeout=0")[0] == 0
    assert person.types("wait", "--for=condition=Ready=False", "kvt/orders", "--timeout=0")[0] == 0
    for goal, lack in (
        ("condition=Stalled", "it has no condition Stalled"),
        ("delete", "it is still there"),
        ("jsonpath={.spec.partitions}=4", ".spec.partitions is 3"),
        ("jsonpath={.status.topicID}=4", ".status.topicID is not there"),
    ):
        code, said = person.types("wait", f"--for={goal}", "kvt/orders", "--timeout=0")
        assert (code, said.rpartition("orders: ")[2]) == (1, f"{lack}\n")


def test_a_condition_of_an_older_generation_does_not_count(person: Person, store: Store) -> None:
    say(store, "orders", ALL_IS_WELL)
    store.apply(load([Path(person.file(FILE.replace("partitions: 3", "partitions: 6")))]), NOW)
    code, said = person.types("wait", "--for=condition=Ready", "kvt/orders", "--timeout=0")
    assert (code, said) == (1, f"{TIMED_OUT} topic.kavka.dev/orders: not looked at yet\n")
    say(store, "orders", ALL_IS_WELL, generation=2)
    assert person.types("wait", "--for=condition=Ready", "kvt/orders", "--timeout=0")[0] == 0


def test_a_cluster_that_does_not_run_is_not_ready(person: Person, store: Store, lock: Lock) -> None:
    say(store, "orders", ALL_IS_WELL)
    lock.release()
    code, said = person.types("wait", "--for=condition=Ready", "kvt/orders", "--timeout=0")
    lack = 'Ready is Unknown: Stopped: KafkaCluster "main" is not running; this was seen last'
    assert (code, said) == (1, f"{TIMED_OUT} topic.kavka.dev/orders: {lack}\n")


def test_wait_ends_when_the_condition_is_met(person: Person, store: Store) -> None:
    turns = iter(
        (
            lambda: say(store, "orders", reconciling("Creating", "it does not exist yet")),
            lambda: say(store, "orders", ALL_IS_WELL),
        )
    )

    def turn() -> None:
        next(turns)()

    assert waits(person, turn, "--for=condition=Ready", "topic", "orders") == (
        0,
        "topic.kavka.dev/orders condition met\n",
    )
    assert next(turns, None) is None


def test_wait_for_delete_and_create(person: Person, store: Store) -> None:
    store.mark_deleted(("Topic", "default", "orders"), NOW)
    goes = partial(store.remove, ("Topic", "default", "orders"))
    assert waits(person, goes, "--for=delete", "kvt/orders")[0] == 0
    assert person.types("wait", "--for=delete", "kvt/orders", "--timeout=0")[0] == 0, "it is gone already"
    assert person.types("wait", "--for=condition=Ready", "kvt/orders") == (
        1,
        'error: there is no Topic "orders" in namespace "default"\n',
    )
    code, said = person.types("wait", "--for=create", "kvt/orders", "--timeout=0")
    assert (code, said.endswith("orders: it does not exist\n")) == (1, True)
    comes = partial(store.apply, load([Path(person.file())]), NOW)
    assert waits(person, comes, "--for=create", "kvt/orders")[0] == 0


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30s", 30.0), ("1h30m", 5400.0), ("500ms", 0.5), ("1.5m", 90.0), ("0", 0.0), ("-1s", A_WEEK_SECONDS)],
)
def test_a_duration_is_read_as_kubectl_reads_it(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "soon", "5d", "1m30", "--1s", "1 m"])
def test_a_text_that_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(CommandError, match="is no duration"):
        parse_duration(text)


@pytest.mark.parametrize("text", ["", "Ready", "condition", "condition=", "delete=now", "jsonpath={.a}"])
def test_a_text_that_is_no_goal_is_refused(text: str) -> None:
    with pytest.raises(CommandError, match="is nothing to wait for"):
        parse_goal(text)


def test_wait_without_a_name_or_goal_is_refused(person: Person) -> None:
    code, said = person.types("wait", "--for=condition=Ready", "kvt")
    assert (code, said) == (
        1,
        "error: name what to wait for: kavka wait KIND/NAME --for=..., or add --all, -l or -f\n",
    )
    assert person.types("wait", "kvt/orders")[0] == 2, "without --for"
