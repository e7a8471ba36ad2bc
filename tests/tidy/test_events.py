"""The names of log events: what, and what became of it (`log.truncated`, `isr.not_altered`, `raft.leader.followed`).

An event is searched for and counted by its name. So the name is fixed text, and one rule makes it: one noun or several,
with dots between them, and a past participle at the end, with `not_` before it where something did not come to pass.
"""

import ast
import re
from collections.abc import Iterator

import pytest

from tests.tidy.tree import PYTHON, parsed, relative

EVENT = re.compile(r"[a-z]+(_[a-z]+)*(\.[a-z]+(_[a-z]+)*)*\.(not_)?(un)?(?P<participle>[a-z]+)")
#: Participles that do not end in -ed.
IRREGULAR = frozenset(
    ("begun", "broken", "done", "found", "held", "kept", "known", "left", "lost", "made", "met", "put", "read",
     "rebuilt", "sent", "set", "shown", "taken", "told", "withdrawn", "won", "written")
)  # fmt: skip
#: Who tells an event: the log of the broker, and the rules of Raft, which hand theirs out as a `Note`.
TELLING = frozenset({"debug", "info", "warning", "error", "exception", "note", "warn"})
#: Where an event only comes through: the place that named it is looked at.
THROUGH = frozenset(
    {
        ("broker/kavka_broker/controller/write_retries.py", "note.event"),
        ("broker/kavka_broker/core/raft/effect_queue.py", "event"),
    }
)

Told = tuple[str, str]  # the name of an event, and where it is told


def is_event(name: str) -> bool:
    """Whether this is noun.past_participle."""
    found = EVENT.fullmatch(name)
    return found is not None and (found["participle"].endswith("ed") or found["participle"] in IRREGULAR)


def told_in(tree: ast.AST, where: str) -> Iterator[Told]:
    """The events of one file."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and is_telling(node):
            for name in names_of(node.args[0]):
                if (where, name) not in THROUGH:
                    yield name, f"{where}:{node.lineno}"


def is_telling(call: ast.Call) -> bool:
    """Whether a call tells an event: `log.info`, `node.effects.note` or `Note`."""
    match call:
        case ast.Call(ast.Attribute(ast.Name("log"), method), [_, *_]):
            return method in TELLING
        case ast.Call(ast.Attribute(ast.Attribute(_, "effects"), "note" | "warn"), [_, *_]):
            return True
        case ast.Call(ast.Name("Note"), [_, *_]):
            return True
    return False


def names_of(event: ast.expr) -> list[str]:
    """The texts that the name of an event may be; its source where it is no fixed text."""
    match event:
        case ast.Constant(str(name)):
            return [name]
        case ast.IfExp(_, one, other):
            return [*names_of(one), *names_of(other)]
    return [ast.unparse(event)]


def all_told() -> list[Told]:
    """The events of broker and operator."""
    code = [
        path
        for path in PYTHON
        if relative(path).startswith(("broker/kavka_broker/", "operator/kavka_operator/", "cli/"))
    ]
    return [told for path in code for told in told_in(parsed(path.read_text()), relative(path))]


def test_an_event_is_a_noun_and_a_past_participle() -> None:
    assert [(name, where) for name, where in all_told() if not is_event(name)] == []


def test_the_events_are_found() -> None:
    names = {name for name, _ in all_told()}
    assert len(names) >= 100
    assert names >= {"log.truncated", "raft.leader.followed", "raft.vote.answered", "metadata.write.refused"}


@pytest.mark.parametrize("name", ["log.truncated", "isr.not_altered", "config.unknown", "raft.own.vote.refused"])
def test_a_noun_and_a_participle_are_taken(name: str) -> None:
    assert is_event(name)


@pytest.mark.parametrize(
    "name",
    [
        "log",
        "truncated",
        "log.Truncated",
        "broker.stopping",
        "log.goes_on",
        "log.twins",
        "log.stray_removed",
        "f'raft.{kind}'",
    ],
)
def test_other_names_of_events_are_refused(name: str) -> None:
    assert not is_event(name)


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ('log.info("log.twins", log=name)', ["log.twins"]),
        ('node.effects.note(f"raft.{kind}")', ["f'raft.{kind}'"]),
        ('log.error("a.lost" if bad else "a.kept", reason=1)', ["a.lost", "a.kept"]),
        ('self._note(Note("disk.refuses", {}))', ["disk.refuses"]),
        ("log.info(name)", ["name"]),
        ("log.info(note.event, **note.fields)", ["note.event"]),
    ],
)
def test_the_names_of_log_events_are_found(source: str, names: list[str]) -> None:
    assert [name for name, _ in told_in(parsed(source), "x.py")] == names
