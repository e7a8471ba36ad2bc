"""The tests of `core/` notice small mistakes in it: a sample of mutants, and the tool that plays them."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tidy.tree import ROOT
from tools.mutants.__main__ import CORE, read_known
from tools.mutants.operators import mutants_of

#: So many as fit into two minutes; the same ones for the same code.
SAMPLE = 60

RULE = '''
LIMIT = 3

def is_within(value: int) -> bool:
    """Whether a value is taken."""
    assert value > -9, "words"
    return 0 <= value < LIMIT

class Counter:
    def __init__(self) -> None:
        self.count = 0

    def add(self, by: int) -> int:
        self.count += by
        return self.count

    def idle(self) -> None:
        self.note(f"nothing, {1}")

    def note(self, text: str) -> None:
        """Say it."""
'''

TESTS = """
from rule import Counter, is_within

def test_bounds():
    assert [is_within(value) for value in (-1, 1, 2, 3)] == [False, True, True, False]

def test_counter():
    assert Counter().add(2) == 2
"""

PLAY = """
import ast, sys
from pathlib import Path
import pytest
from tools.mutants.operators import mutants_of
from tools.mutants.running import Player

root = Path(sys.argv[1])
tree = ast.parse((root / "rule.py").read_bytes())
player = Player(root, {"rule.py": tree}, list(mutants_of("rule.py", tree)), 1)
flags = ["-pno:terminal", "-pno:randomly", "-pno:cacheprovider", f"-opythonpath={root}", f"--rootdir={root}"]
assert pytest.main([*flags, str(root / "test_rule.py")], plugins=[player]) == 0
print("survived:", [one.change for one in player.outcome.survived])
print("not run:", [one.change for one in player.outcome.not_run])
print("killed:", len(player.outcome.killed))
"""


def test_mistakes_are_small_and_leave_words_and_assertions_alone() -> None:
    assert [one.name for one in mutants_of("rule.py", ast.parse(RULE))] == [
        "rule.py is_within: return 0 <= value < LIMIT -> return None",
        "rule.py is_within: 0 <= value < LIMIT -> 0 < value < LIMIT",
        "rule.py is_within: 0 <= value < LIMIT -> 0 > value < LIMIT",
        "rule.py is_within: 0 <= value < LIMIT -> 0 <= value <= LIMIT",
        "rule.py is_within: 0 <= value < LIMIT -> 0 <= value >= LIMIT",
        "rule.py is_within: 0 -> 1",
        "rule.py Counter.__init__: self.count = 0 -> pass",
        "rule.py Counter.__init__: 0 -> 1",
        "rule.py Counter.add: self.count += by -> pass",
        "rule.py Counter.add: return self.count -> return None",
    ]


def test_what_no_test_notices_survives(tmp_path: Path) -> None:
    """A bound that is asked on one side only, and a function that no test calls."""
    (tmp_path / "rule.py").write_text(
        RULE.replace("def idle(self) -> None:\n", "def idle(self) -> None:\n        self.count += 1\n")
    )
    (tmp_path / "test_rule.py").write_text(TESTS)
    command = [sys.executable, "-c", PLAY, str(tmp_path)]
    ran = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    assert ran.stdout.splitlines() == [
        "survived: ['0 <= value < LIMIT -> 0 < value < LIMIT', '0 -> 1']",
        "not run: ['self.count += 1 -> pass', '1 -> 2']",
        "killed: 8",
    ]


def test_a_mutant_that_is_known_is_one() -> None:
    """A line that names none is of code that is gone."""
    names = {
        one.name
        for path in CORE.rglob("*.py")
        for one in mutants_of(str(path.relative_to(CORE)), ast.parse(path.read_bytes()))
    }
    assert not read_known() - names


@pytest.mark.slow
@pytest.mark.extended
def test_a_sample_of_mutants_is_noticed() -> None:
    command = [sys.executable, "-m", "tools.mutants", "--sample", str(SAMPLE)]
    ran = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout
    assert re.search(r"mutants noticed", ran.stdout)
