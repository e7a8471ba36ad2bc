"""The ledger: which seeds were run at which commit, and what came of them. A long run is made of slices.

Each slice is a line of a file, written when it is done, so that a run that was broken off goes on behind it; seeds that
were run at the same commit with the same options are not run again. `table` puts together what the file has: a row for
each commit, with the digest of all that happened, which anybody can have again from the same seeds.
"""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.sim.totals import Totals

SLICE_SEEDS: Final = 20
HEAD: Final = (
    "| seeds | commit | simulated hours | records acknowledged | faults | refused for safety | failed |"
    " digest of totals |\n"
    "|---|---|---|---|---|---|---|---|"
)


@dataclass(frozen=True, slots=True)
class Run:
    """What a digest depends on: the code, and what was asked for beside the seeds."""

    commit: str
    options: str = ""

    def __str__(self) -> str:
        return f"{self.commit} {self.options}".rstrip()


class Ledger:
    """The slices in a file."""

    def __init__(self, path: Path, run: Run) -> None:
        self._path = path
        self._run = run
        self._slices: list[tuple[Run, Totals]] = []
        for line in path.read_text().splitlines() if path.exists() else ():
            fields = json.loads(line)
            known = Run(fields.pop("commit"), fields.pop("options"))
            self._slices.append((known, Totals.of_fields(fields)))

    def add(self, totals: Totals) -> None:
        """A slice is done."""
        fields = {"commit": self._run.commit, "options": self._run.options, **totals.as_fields()}
        with self._path.open("a") as file:
            file.write(json.dumps(fields) + "\n")
        self._slices.append((self._run, totals))

    def missing(self, seeds: range) -> list[int]:
        """Those of the seeds that no slice of this run has."""
        there = {seed for run, totals in self._slices if run == self._run for seed in totals.digests}
        return [seed for seed in seeds if seed not in there]

    def totals(self, run: Run | None = None) -> Totals:
        """Of all slices of a run, of this one unless said otherwise."""
        together = Totals()
        for known, totals in self._slices:
            if known == (run or self._run):
                together.add_all(totals)
        return together

    def changed(self) -> dict[Run, list[int]]:
        """The seeds with another digest than in a run of another commit, for each that was asked for the same."""
        mine = self.totals().digests
        found: dict[Run, list[int]] = {}
        for run in dict.fromkeys(run for run, _ in self._slices):
            if run == self._run or run.options != self._run.options:
                continue
            theirs = self.totals(run).digests
            if shared := sorted(mine.keys() & theirs.keys()):
                found[run] = [seed for seed in shared if mine[seed] != theirs[seed]]
        return found

    def table(self) -> str:
        """A row for each run, in the order in which they began."""
        runs = dict.fromkeys(run for run, _ in self._slices)
        return "\n".join([HEAD, *(row(run, self.totals(run)) for run in runs)])


def row(run: Run, totals: Totals) -> str:
    faults, refused = totals.faults.total(), totals.refused.total()
    return (
        f"| {spans(sorted(totals.digests))} | {run} | {totals.seconds / 3600:.2f} | {totals.acknowledged:,}"
        f" | {faults:,} | {refused:,} | {len(totals.failed)} | `{totals.digest}` |"
    )


def spans(seeds: list[int]) -> str:
    """`1-200, 301-340`."""
    found: list[list[int]] = []
    for seed in seeds:
        if found and seed == found[-1][1] + 1:
            found[-1][1] = seed
        else:
            found.append([seed, seed])
    return ", ".join(f"{first}-{last}" if first != last else str(first) for first, last in found)


def commit_here(root: Path) -> str:
    """Of the tree at `root`, with a plus where it has been changed since."""
    commit = _git(root, "rev-parse", "--short=10", "HEAD").strip() or "unknown"
    return commit + ("+" if _git(root, "status", "--porcelain", "--untracked-files=no") else "")


def _git(root: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=False).stdout
