"""Vale holds our rules for prose over code and documents; where one does not hold yet, the number of places only falls.

Part of `make test-all` alone: it takes 17 s of a processor, and its first run builds vale. The rules are the files of
tools/prose/styles/Kavka; `test_english.py` holds the shortest of them in `make check`.
"""

from pathlib import Path

import pytest

from tools.prose.counts import COUNTS, checked, counted
from tools.prose.program import findings, is_here

pytestmark = pytest.mark.extended

TEXT = '''\
"""The head of a module may not say anew."""

x = "anew"


# The broker is told, in vain.
def f() -> None:
    """Whoever waits.

    Two mishaps, but for Zookeeper.
    """
'''


@pytest.fixture(autouse=True)
def vale() -> None:
    if not is_here():
        pytest.skip("vale is lacking: Go 1.25 or newer and a C compiler build it")


def test_the_rules_hold_in_all_but_so_many_places() -> None:
    found = findings(checked())
    assert found
    risen = {
        (room, rule): count
        for room, rules in counted(found).items()
        for rule, count in rules.items()
        if count > COUNTS.get(room, {}).get(rule, 0)
    }
    assert risen == {}, "`python -m tools.prose` names the places: say it as CONTRIBUTING does under English"


def test_each_rule_finds_what_it_is_for(tmp_path: Path) -> None:
    file = tmp_path / "f.py"
    file.write_text(TEXT)
    assert [(one.line, one.rule) for one in findings([file])] == [
        (1, "Plain"), (6, "Plain"), (6, "Told"), (8, "Subject"), (10, "Field"), (10, "Names"), (10, "Plain"),
    ]  # fmt: skip


def test_a_long_sentence_of_a_document_is_found(tmp_path: Path) -> None:
    file = tmp_path / "f.md"
    file.write_text(f"It {'goes ' * 39}on.\n\nIt {'goes ' * 20}on.\n")
    assert [(one.line, one.rule) for one in findings([file])] == [(1, "Length")]
