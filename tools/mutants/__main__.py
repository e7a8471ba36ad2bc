"""`python -m tools.mutants`: how many planted mistakes the tests of `core/` notice.

python -m tools.mutants --sample 100 --seed 1        a hundred mutants, the same ones for the same code
python -m tools.mutants raft/ partition/leader.py    all of some modules
"""

import argparse
import ast
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import pytest

from tools.mutants.operators import Mutant, mutants_of
from tools.mutants.running import Outcome, Player

ROOT: Final = Path(__file__).parent.parent.parent
CORE: Final = ROOT / "broker/kavka_broker/core"
KNOWN: Final = Path(__file__).parent / "known.txt"
PACKAGES: Final = (
    "audit",
    "authentication",
    "authorization",
    "cleaning",
    "config",
    "consumer_group",
    "fairness",
    "group",
    "metadata",
    "partition",
    "quota",
    "raft",
    "share",
    "share_group",
    "streams_group",
    "telemetry",
    "transaction",
)
#: Tests of the shells that test these rules too.
SHELLS: Final = (
    "tests/unit/coordinator/test_*.py",
    "tests/unit/storage/test_cleaning*.py",
    "tests/unit/storage/test_idempotence.py",
    "tests/unit/storage/test_leader_epochs.py",
    "tests/unit/replica/test_high_watermark.py",
    "tests/unit/api/test_*txn*.py",
    "tests/unit/api/test_*transactional*.py",
    "tests/unit/api/test_read_committed.py",
    "tests/property/storage/test_cleaning*.py",
)
SCORE_LEAST: Final = 0.9


def main(arguments: Sequence[str]) -> int:
    """Play, print survivors and score. Returns 1 where the score is too low, 2 where tests fail by themselves."""
    options = parser().parse_args(arguments)
    trees = {str(path.relative_to(CORE)): ast.parse(path.read_bytes()) for path in sorted(CORE.rglob("*.py"))}
    known = read_known()
    mutants = drawn(trees, options)
    player = Player(CORE, trees, [mutant for mutant in mutants if mutant.name not in known], options.jobs)
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["TMPDIR"] = tempfile.tempdir = scratch
        plugins = [f"-pno:{name}" for name in ("terminal", "randomly", "cacheprovider")]
        flags = ["-oaddopts=", "--import-mode=importlib", f"--rootdir={ROOT}"]
        status = pytest.main([*plugins, *flags, *suites()], plugins=[player])
    if player.broken or status != 0:
        print(f"without any mutant these fail: {player.broken or 'the collection'}")
        return 2
    return report(player.outcome, sum(mutant.name in known for mutant in mutants))


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(prog="python -m tools.mutants", description="Plant mistakes in core/.")
    found.add_argument("modules", nargs="*", help="beginnings of paths below core/; all without")
    found.add_argument("--sample", type=int, help="so many of them; all without")
    found.add_argument("--seed", type=int, default=1, help="of the sample")
    found.add_argument("--jobs", type=int, default=1, help="processes at a time")
    return found


def drawn(trees: dict[str, ast.Module], options: argparse.Namespace) -> list[Mutant]:
    """Draw the mutants of the modules that were named, or a sample of them."""
    wanted = tuple(options.modules) or ("",)
    found = [mutant for name, tree in trees.items() if name.startswith(wanted) for mutant in mutants_of(name, tree)]
    if options.sample is not None:
        found = sorted(found, key=lambda mutant: mutant.rank(options.seed))[: options.sample]
    return sorted(found, key=lambda mutant: (mutant.module, mutant.line))


def suites() -> Iterator[str]:
    """Tests of the rules: unit and property."""
    for package in PACKAGES:
        for tier in ("unit", "property"):
            if (path := ROOT / "tests" / tier / package).is_dir():
                yield from (str(file) for file in sorted(path.glob("test_*.py")) if file.stem != "test_teeth")
    yield from (str(path) for pattern in SHELLS for path in sorted(ROOT.glob(pattern)))


def read_known() -> set[str]:
    """Mutants that no test need notice. A line that begins with two blanks is a reason."""
    lines = KNOWN.read_text(encoding="utf-8").splitlines()
    return {line for line in lines if line and not line.startswith(("#", " "))}


def report(outcome: Outcome, known: int) -> int:
    for title, mutants in (("survived", outcome.survived), ("no test runs", outcome.not_run)):
        for mutant in sorted(mutants, key=lambda survivor: (survivor.module, survivor.line)):
            print(f"{title}: {mutant.name}  (line {mutant.line})")
    killed, lost = len(outcome.killed), len(outcome.survived) + len(outcome.not_run)
    score = killed / max(1, killed + lost)
    print(f"{killed} of {killed + lost} mutants noticed ({score:.1%}); {known} are known not to be noticed")
    return 0 if score >= SCORE_LEAST else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
