"""Judges a run by the allow list: of each class that was played, so many cases pass as it says, and none fails."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from tests.conformance.kafka_own.allow_list import OwnTests
from tests.conformance.kafka_own.runs import KAVKA, Case, Run

SHOWN_MAX = 300


def pattern(classes: Iterable[OwnTests]) -> str:
    """The cases outside of the list, as a regular expression of CLASS.METHOD SHOWN-NAME; empty for none."""
    return "|".join(rf"^{entry.name.rpartition('.')[2]}\.{one}" for entry in classes for one in entry.outside)


def by_class(cases: Iterable[Case]) -> dict[str, list[Case]]:
    """The cases, by the full names of their classes."""
    found: defaultdict[str, list[Case]] = defaultdict(list)
    for case in cases:
        found[case.kind].append(case)
    return found


def complaints(run: Run, classes: Sequence[OwnTests]) -> list[str]:
    """What of a run is not as the list says."""
    found = by_class(run.cases)
    wrong = failures(run)
    for entry in classes:
        passed = sum(case.outcome == "passed" for case in found.get(entry.name, ()))
        if passed != entry.passes:
            wrong.append(f"{run.product} {entry.name}: {passed} cases passed, the allow list says {entry.passes}")
    return wrong


def failures(run: Run) -> list[str]:
    """The cases that did not pass, and whether others were never played."""
    wrong = [f"{run.product} {case.kind}.{case.name}: {case.why[:SHOWN_MAX]}" for case in run.cases if is_wrong(case)]
    if not run.cases:
        wrong.append(f"{run.product}: no case was played: {run.logs}")
    if run.product == KAVKA and not run.nodes:  # without the stand-in Apache Kafka would pass all of the list
        wrong.append(f"{run.product}: no node of it was started: {run.logs}")
    if not run.has_ended:
        wrong.append(f"{run.product}: the run was cut off: {run.logs}")
    return wrong


def is_wrong(case: Case) -> bool:
    """Whether the case did neither pass nor say itself that it cannot be played."""
    return case.outcome not in ("passed", "skipped")


def table(run: Run) -> list[str]:
    """A line for each class, and below it one for each case that did not pass."""
    lines = []
    for kind, cases in sorted(by_class(run.cases).items()):
        counts = Counter(case.outcome for case in cases)
        told = ", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items()))
        lines.append(f"{run.product:12} {kind}: {told}; {sum(case.seconds for case in cases):.0f} s")
        lines += [f"  {case.outcome} {case.name}: {case.why[:SHOWN_MAX]}" for case in cases if is_wrong(case)]
    return lines
