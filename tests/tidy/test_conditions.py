"""The page of conditions has every reason that the operator can write, with what it is the reason of, and no other."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from kavka_operator.api import GROUP
from tests.tidy.tree import ROOT, nodes, parsed, relative
from tools.definitions.crd import NOT_SEEN

OPERATOR = ROOT / "operator/kavka_operator"
PAGE = ROOT / "docs/reference/conditions.md"
READY = {"stalled": "False", "reconciling": "False", "unknown": "Unknown", "ready": "True"}
"""Functions that make words of a reason, and the status of Ready that they give it."""
ROLL = OPERATOR / "reconcile/rollout/roll.py"
HANDED_ON = {"_wait": ("Ready", "False"), "_leave": ("RolloutPending", "True")}
"""Methods of the roll that hand a reason on, and the condition that it is of."""
MAKERS = frozenset({"operator/kavka_operator/domain/plan.py"})
"""Where words are made of whatever reason is handed in."""
SAME_AS_READY = "Word('Available', 'Unknown', hidden.reason, hidden.message)"
"""A condition that repeats the reason of Ready, which was found where that was made."""
REASON = re.compile(r"[A-Z][A-Za-z]+")
ANNOTATION = re.compile(rf"{re.escape(GROUP)}/[a-z-]+")

Said = tuple[str, str, str]
"""Condition, status and reason."""


@cache
def constants(path: Path) -> dict[str, str]:
    """The names of a module that stand for a text, its own and those it imports from the operator."""
    found: dict[str, str] = {}
    for node in parsed(path.read_text()).body:
        match node:
            case ast.Assign([ast.Name(name)], ast.Constant(str(value))):
                found[name] = value
            case ast.ImportFrom(str(module), names, 0) if module.startswith("kavka_operator."):
                other = ROOT / "operator" / f"{module.replace('.', '/')}.py"
                known = constants(other) if other.exists() else {}
                found |= {(one.asname or one.name): known[one.name] for one in names if one.name in known}
    return found


def texts(node: ast.expr, known: dict[str, str]) -> list[str]:
    """The texts that an expression can be; none where that cannot be told."""
    match node:
        case ast.Constant(str(value)):
            return [value]
        case ast.Name(name) if name in known:
            return [known[name]]
        case ast.IfExp(_, body, orelse):
            return texts(body, known) + texts(orelse, known)
    return []


def said_by(call: ast.Call, known: dict[str, str], *, in_roll: bool = False) -> list[Said] | None:
    """What a call says; None where it says nothing, no entries where its reason cannot be told."""
    function = (
        call.func.body if isinstance(call.func, ast.IfExp) else call.func
    )  # (reconciling if ... else stalled)(...)
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    named = {keyword.arg: keyword.value for keyword in call.keywords}
    match name:
        case "Word" | "Condition" if len(call.args) >= 3 or "reason" in named:
            kind, status, reason = (
                texts(call.args[place] if place < len(call.args) else named[word], known)
                for place, word in enumerate(("type", "status", "reason"))
            )
            return [(kind[0], status[0], text) for text in reason] if kind and status else []
        case "ready":
            reasons = texts(call.args[1] if len(call.args) > 1 else named.get("reason", ast.Constant("Ready")), known)
            return [("Ready", READY[name], text) for text in reasons]
        case _ if name in READY:
            return [("Ready", READY[name], text) for text in texts(call.args[0], known)]
        case _ if in_roll and name in HANDED_ON:
            return [(*HANDED_ON[name], text) for text in texts(call.args[0], known)]
    return None


@cache
def calls(path: Path) -> list[tuple[ast.Call, list[Said]]]:
    """Each call that says a reason, with what it says."""
    known = constants(path)
    asked = [node for node in nodes(parsed(path.read_text())) if isinstance(node, ast.Call)]
    found = [(node, said_by(node, known, in_roll=path == ROLL)) for node in asked]
    return [(call, said) for call, said in found if said is not None]


MODULES = [path for path in sorted(OPERATOR.rglob("*.py")) if relative(path) not in MAKERS]


def written() -> set[Said]:
    """Every condition, status and reason that the operator can write."""
    found = {said for path in MODULES for _, every in calls(path) for said in every}
    return found | {(NOT_SEEN["type"], NOT_SEEN["status"], NOT_SEEN["reason"])}


def rows(heading: str) -> Iterator[list[str]]:
    """The cells of the table under a heading."""
    section = PAGE.read_text().partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    for line in section.splitlines():
        if line.startswith("| `"):
            yield [cell.strip() for cell in line.strip("|").split(" | ")]


def documented() -> set[Said]:
    """What the page says can be written."""
    of_ready = {("Ready", cells[2], reason) for cells in rows("Reasons") for reason in REASON.findall(cells[0])}
    others = {
        (cells[0].strip("`"), cells[1], reason)
        for cells in rows("Other conditions")
        for reason in REASON.findall(cells[2])
    }
    return of_ready | others


def test_the_page_has_every_reason_and_no_other() -> None:
    missing, extra = written() - documented(), documented() - written()
    assert not missing, "add a row to docs/reference/conditions.md"
    assert not extra, "nothing writes it any more: take it out of docs/reference/conditions.md"


def test_every_reason_can_be_told_from_the_code() -> None:
    """A reason that comes from elsewhere would be missed above; those that hand one on are named."""
    unclear = [
        f"{relative(path)}:{call.lineno}"
        for path in MODULES
        for call, said in calls(path)
        if not said and ast.unparse(call) != SAME_AS_READY and not is_handed_on(path, call)
    ]
    assert not unclear, "write the reason as a text or a constant"


def is_handed_on(path: Path, call: ast.Call) -> bool:
    """Whether a call stands in a method that hands its reason on, so that its callers are looked at."""
    methods = [node for node in nodes(parsed(path.read_text())) if isinstance(node, ast.FunctionDef)]
    return any(path == ROLL and method.name in HANDED_ON and call in list(ast.walk(method)) for method in methods)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ('stalled("Refused", x)', [("Ready", "False", "Refused")]),
        ('stalled("A" if x else "B", y)', [("Ready", "False", "A"), ("Ready", "False", "B")]),
        ('ready("words")', [("Ready", "True", "Ready")]),
        ('ready("words", "Observed")', [("Ready", "True", "Observed")]),
        ('Word("Shadowed", "True", "Wins", x)', [("Shadowed", "True", "Wins")]),
        ('(reconciling if x else stalled)("Failing", y)', [("Ready", "False", "Failing")]),
        ("stalled(reason, x)", []),
        ("other(1)", None),
    ],
)
def test_what_a_call_says_is_seen(source: str, said: list[Said] | None) -> None:
    (statement,) = ast.parse(source).body
    assert isinstance(statement, ast.Expr)
    assert isinstance(statement.value, ast.Call)
    assert said_by(statement.value, {}) == said


def test_the_annotations_that_are_read_are_on_the_page_and_no_other() -> None:
    read = {
        node.value
        for path in sorted((OPERATOR / "reconcile").rglob("*.py"))
        for node in nodes(parsed(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and ANNOTATION.fullmatch(node.value)
    }
    assert {cells[0].strip("`") for cells in rows("Annotations")} == read
