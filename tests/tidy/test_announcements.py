"""The page of Events has every reason that the operator can announce, and no other."""

import ast
import re

from kavka_operator.reconcile.notices import OF_ACTION
from tests.tidy.tree import ROOT, nodes, parsed

SOURCE = ROOT / "operator/kavka_operator/reconcile/notices.py"
PAGE = ROOT / "docs/reference/events.md"
STALLED = "Stalled"
"""A condition, whose reasons are those of the page of conditions."""
REASON = re.compile(r"[A-Z][A-Za-z]+")


def written() -> set[str]:
    """The reasons that stand in the module as texts, by names or in its table."""
    named = {
        node.value
        for statement in parsed(SOURCE.read_text()).body
        if isinstance(statement, ast.Assign)
        for node in ast.walk(statement.value)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    return (named | set(OF_ACTION.values())) - {STALLED}


def documented() -> set[str]:
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    return {reason for row in rows for reason in REASON.findall(row.split("|")[1])}


def test_the_page_has_every_reason_and_no_other() -> None:
    assert written() - documented() == set(), "add a row to docs/reference/events.md"
    assert documented() - written() == set(), "nothing announces it: take it out of docs/reference/events.md"


def test_a_reason_is_a_name_a_table_s_or_that_of_the_condition() -> None:
    """A reason from elsewhere would be missed above."""
    calls = [node for node in nodes(parsed(SOURCE.read_text())) if isinstance(node, ast.Call)]
    given = {ast.unparse(call.args[0]) for call in calls if ast.unparse(call.func) == "Notice"}
    assert given == {
        "reason", "now.reason", "INVALID", "DRIFT_CORRECTED", "QUOTA_REMOVED", "ROLL_BEGUN", "NODE_RESTARTED",
        "ROLL_DONE", "ROLL_WAITS if is_left else ROLL_BLOCKED",
    }  # fmt: skip
