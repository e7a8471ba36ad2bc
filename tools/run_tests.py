"""Runs `make check`, `make test` and `make test-all`, and sums up in one line.

What is quick runs `TOGETHER` steps at a time, and each is shown as a whole when it is over; `make check` leaves out
what is marked `thorough`, and unit and property tests that import nothing of what has changed (`tools/affected.py`).
`make test` then runs what starts processes, which waits for half of its time, in three lanes: each takes the longest
suite that is left. Behind them, with the processor's time that those leave, goes what only computes. It leaves out what
is marked `extended`, which `make test-all` runs too. Each suite goes on when another one failed, so that one run shows
everything, and is shown as a whole when it is over. A test with real processes that fails runs once more at the end,
with nothing beside it: if it passes then, it counts as passed and is named as flaky. What the machine lacks is said
first, the suites that were skipped for it are named at the end, and with CI=true a lack counts as a failure. What
failed is named before the last line, for a log may be kept by its end alone. That line is always `N passed, N failed, N
skipped`: the tools count one each, pytest counts its tests.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from queue import SimpleQueue
from xml.etree import ElementTree as ET

from tools import affected
from tools.house_measures import measured, table
from tools.prerequisites import Prerequisite, lacking

BIN = Path(sys.executable).parent
CODE = (
    "broker/kavka_broker",
    "operator/kavka_operator",
    "cli/kavka_audit_run",
    "cli/kavka_cli",
    "cli/kavka_demo",
    "cli/kavka_pytest",
    "cli/kavka_top",
    "audit/kavka_audit",
    "tools",
    "tests",
    "bench",
    "e2e",
)
LINT = {
    "ruff check": ("ruff", "check", "--quiet", "."),
    "ruff format": ("ruff", "format", "--check", "--quiet", "."),
    "mypy": ("mypy", "--no-error-summary", *CODE),
    "import-linter": ("lint-imports", "--no-cache"),
    "commit titles": ("python", "-m", "tools.commit_titles"),
}
SUITE_SECONDS_MAX = 3600
PORTS = ("10000-16000", "16000-23000", "23000-30000")  # of the lanes, which are as many
QUICK = ("tests/unit", "tests/property", "tests/tidy")  # the longest first, which is run in parts
THOROUGH = "thorough"  # the mark of what `make check` leaves to `make test`
EXTENDED = "extended"  # the mark of what `make test` leaves to `make test-all`
WITH_PROCESSES = ("tests/conformance/", "tests/operator/", "tests/kube/", "tests/chaos/")  # what fails runs once more
REPEATED_MAX = 10  # failures that run once more; where more tests fail, something is broken
SLOWEST = 20  # tests that are named by their duration
NO_TESTS = 5  # pytest's exit status where nothing was left to run
PARTS = 6
# Images of Python set it: each suite would compile again what others share, for 3 s.
UNSET = ("PYTHONDONTWRITEBYTECODE",)
MARKED = {"check": f"not {THOROUGH} and not {EXTENDED}", "test": f"not {EXTENDED}", "test-all": ""}
NAMED_MAX = 30  # failures that are named at the end
WHY_CHARS = 200  # of each one's first line
LONG = (  # the longest first: what is long and begins last has the machine for itself, and leaves half of it idle
    "tests/kube",
    "tests/operator",
    "tests/conformance/security",
    "tests/conformance/metadata",
    "tests/conformance/clients",
    "tests/conformance/cluster",
    "tests/conformance/quotas",
    "tests/conformance/authorization",
    "tests/conformance/kafka_own",
    "tests/conformance/groups",
    "tests/conformance/transactions",
    "tests/chaos",
    "tests/conformance/storage",
    "tests/conformance/analytics",
    "tests/conformance/side_by_side",
    "tests/conformance/external",
)
SUITE_PARTS = {"tests/kube": 2}  # what would take longer than the other lanes, in so many items
COMPUTED = "tests/sim"  # it has a clock of its own: how long it takes changes nothing of what it finds
COMPUTED_ALONE = ("tests/sim/test_simulation.py", "tests/sim/test_kept_seeds.py")  # a third of it each
COMPUTED_TOGETHER = 2  # parts; they go on when the lanes are done, and then each has a processor
NICE = 10
TOGETHER = min(3, 1 + (os.cpu_count() or 1))  # tests wait a fifth of their time: for a loop, a process, a disk


@dataclass(frozen=True, slots=True)
class Failure:
    """A step or test that failed: its name, which is pytest's id for a test, and the first line of why."""

    name: str
    why: str

    def __str__(self) -> str:
        return f"{self.name}: {self.why}"

    @property
    def may_pass_alone(self) -> bool:
        """Whether it is a test with real processes, which other work on the machine can disturb."""
        return "::" in self.name and self.name.startswith(WITH_PROCESSES)


@dataclass(slots=True)
class Tally:
    """What passed, failed and was skipped, and which and for what."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    reasons: Counter[tuple[str, str]] = field(default_factory=Counter)  # (suite, why) -> tests
    failures: list[Failure] = field(default_factory=list)
    flaky: list[Failure] = field(default_factory=list)  # they failed, and passed alone
    seconds: dict[str, float] = field(default_factory=dict)  # by test, of the slowest ones

    def add(self, other: "Tally") -> None:
        """Count what another one has counted."""
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped
        self.reasons += other.reasons
        self.failures += other.failures
        self.flaky += other.flaky
        self.seconds = slowest({**self.seconds, **other.seconds})

    def fail(self, name: str, why: str) -> None:
        """Count one failure that no report of pytest counts."""
        self.failed += 1
        self.failures.append(Failure(name, why))

    def take_for_flaky(self, failures: list[Failure]) -> None:
        """Count tests that failed and passed alone as passed."""
        self.failed -= len(failures)
        self.passed += len(failures)
        self.failures = [one for one in self.failures if one not in failures]
        self.flaky += failures

    def count_suites(self, report: Path) -> None:
        """Add the outcome of one pytest run from its JUnit report."""
        suites = ET.parse(report).getroot().iter("testsuite")  # noqa: S314 - written by our own pytest
        for suite in suites:
            tests, skipped = int(suite.get("tests", 0)), int(suite.get("skipped", 0))
            failed = int(suite.get("failures", 0)) + int(suite.get("errors", 0))
            self.passed += tests - failed - skipped
            self.failed += failed
            self.skipped += skipped
            for case in suite.iter("testcase"):
                name = id_of(case.get("classname", "?"), case.get("name", "?"))
                self.seconds[name] = float(case.get("time", 0))
                for skip in case.iter("skipped"):
                    self.reasons[case.get("classname", "?"), skip.get("message", "")] += 1
                for why in (*case.iter("failure"), *case.iter("error")):
                    self.failures.append(Failure(name, first_line(why)))
        self.seconds = slowest(self.seconds)


def slowest(seconds: dict[str, float]) -> dict[str, float]:
    """The `SLOWEST` tests of those given, the slowest first."""
    return dict(sorted(seconds.items(), key=lambda one: -one[1])[:SLOWEST])


def id_of(classname: str, name: str) -> str:
    """The id by which pytest runs a test of a JUnit report alone."""
    parts = classname.split(".")
    for count in range(len(parts), 0, -1):
        path = "/".join(parts[:count]) + ".py"
        if Path(path).is_file():
            return "::".join([path, *parts[count:], name])
    return f"{classname}::{name}"


def first_line(why: ET.Element) -> str:
    """The first line of what a test failed with, cut to `WHY_CHARS`."""
    return next(iter(why.get("message", "").splitlines()), "")[:WHY_CHARS]


@dataclass(slots=True)
class Ran:
    """What came of one step."""

    tally: Tally
    text: str


def run_tool(name: str, command: tuple[str, ...]) -> Ran:
    """One of the linters: passed or failed as a whole."""
    started = time.monotonic()
    program, *arguments = command
    ran = subprocess.run([BIN / program, *arguments], check=False, capture_output=True, text=True, encoding="utf-8")
    is_well, seconds = ran.returncode == 0, time.monotonic() - started
    text = f"{name:<16} {'passed' if is_well else 'FAILED'} {seconds:6.1f} s\n"
    if is_well:
        return Ran(Tally(passed=1), text)
    tally = Tally()
    tally.fail(name, f"its exit status is {ran.returncode}")
    return Ran(tally, f"{text}{ran.stdout}{ran.stderr}\n")


def run_pytest(
    paths: tuple[str, ...],
    *,
    nice: int = 0,
    marked: str = "",
    ports: str = "",
    seconds_max: float = SUITE_SECONDS_MAX,
) -> Ran:
    """Some directories, files or ids of tests, of those that are there. `marked`: only those whose marks are such.
    `ports`: on which their servers listen, as 10000-20000.
    """
    environment = {name: value for name, value in os.environ.items() if name not in UNSET}
    environment |= {"KAVKA_TEST_PORTS": ports} if ports else {}
    present = [path for path in paths if Path(path.partition("::")[0]).exists()]
    tally = Tally()
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch) / "report.xml"
        pytest = (sys.executable, "-m", "pytest", "-q", "--durations=5", f"--junitxml={report}", "-m", marked)
        command = ["nice", f"-n{nice}", *pytest, *present]
        try:
            ran = subprocess.run(
                command, check=False, timeout=seconds_max, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                env=environment,
            )  # fmt: skip
            is_well = ran.returncode == 0 or (marked and ran.returncode == NO_TESTS)
            said, why = ran.stdout or b"", "" if is_well else f"its exit status is {ran.returncode}"
        except subprocess.TimeoutExpired as late:
            why = f"ended after {seconds_max} s; the test that hangs is named above"
            said = (late.stdout or b"") + f"{' '.join(present)}: {why}\n".encode()
        if report.exists():
            tally.count_suites(report)
        if why and not tally.failed:  # pytest did not get to the tests, found none, or ended before its report
            tally.fail(" ".join(paths), why)
    return Ran(tally, said.decode("utf-8", "replace"))


def quick_parts(chosen: list[str] | None = None, suites: tuple[str, ...] = QUICK) -> list[tuple[str, ...]]:
    """The quick suites in the order of their time: the longest alone would take one worker longer than all others the
    second, so it runs in parts behind the second longest, and the shortest ends the run. `chosen`: of the first two
    these files alone.
    """
    longest, second, *others = suites
    parts = [(second,), *divided(longest, PARTS)] if chosen is None else shared_out(chosen, min(PARTS, TOGETHER))
    return [*parts, *((path,) for path in others)]


def divided(suite: str, count: int) -> list[tuple[str, ...]]:
    """What is directly in a suite, in so many parts with about as much source of tests in each."""
    return shared_out([path.as_posix() for path in sorted(Path(suite).glob("*"))], count)


def shared_out(paths: list[str], count: int) -> list[tuple[str, ...]]:
    """Paths in so many parts with about as much source of tests in each."""
    rooms = {path: sum(file.stat().st_size for file in sources(Path(path))) for path in paths}
    parts: list[list[str]] = [[] for _ in range(count)]
    sizes = [0] * count
    for path, size in sorted(rooms.items(), key=lambda room: -room[1]):
        if size:
            smallest = sizes.index(min(sizes))
            parts[smallest].append(path)
            sizes[smallest] += size
    return [tuple(part) for part in parts if part]


def sources(path: Path) -> list[Path]:
    """The files with tests in a directory, or the one that is given."""
    return sorted(path.rglob("test_*.py")) if path.is_dir() else [path] * path.match("test_*.py")


def run_quick(
    tally: Tally,
    marked: str = "",
    chosen: list[str] | None = None,
    *,
    suites: tuple[str, ...] = QUICK,
    lint: Mapping[str, tuple[str, ...]] = LINT,
) -> None:
    """The linters and what is quick of the tests, some at a time; the tests first, for they take longest."""
    with ThreadPoolExecutor(TOGETHER) as pool:
        tests = [pool.submit(run_pytest, part, marked=marked) for part in quick_parts(chosen, suites)]
        linters = [pool.submit(run_tool, name, command) for name, command in lint.items()]
        for one in [*linters, *tests]:
            ran = one.result()
            print(ran.text, end="", flush=True)
            tally.add(ran.tally)


def run_others(tally: Tally, marked: str = "", long: tuple[str, ...] = LONG) -> None:
    """All other suites: what starts processes in lanes, and behind it what only computes."""
    with ThreadPoolExecutor(len(PORTS)) as lanes, ThreadPoolExecutor(COMPUTED_TOGETHER) as behind:
        free: SimpleQueue[str] = SimpleQueue()
        for ports in PORTS:
            free.put(ports)
        computed = [behind.submit(run_pytest, part, nice=NICE, marked=marked) for part in computed_parts()]
        running = [lanes.submit(run_in_lane, suite, free, marked) for suite in suites_with_processes(long)]
        for one in as_completed([*running, *computed]):
            ran = one.result()
            print(ran.text, end="", flush=True)
            tally.add(ran.tally)


def computed_parts() -> list[tuple[str, ...]]:
    """What only computes, the longest parts first, so that both processors have some of it to the end."""
    alone = [(path,) for path in COMPUTED_ALONE]
    left = [path for part in divided(COMPUTED, 1) for path in part if path not in COMPUTED_ALONE]
    return [*alone, *shared_out(left, COMPUTED_TOGETHER)]


def run_in_lane(suite: tuple[str, ...], free: "SimpleQueue[str]", marked: str) -> Ran:
    """A suite, with ports that no other has meanwhile."""
    ports = free.get()
    try:
        return run_pytest(suite, marked=marked, ports=ports)
    finally:
        free.put(ports)


def suites_with_processes(long: tuple[str, ...] = LONG) -> list[tuple[str, ...]]:
    """What is in a directory of tests that is neither part of the quick check nor only computes: the long ones alone
    and first, the longest of all in parts, then what is left of each directory.
    """
    first = [part for path in long if Path(path).is_dir() for part in parts_of(path)]
    directories = (path for path in sorted(Path("tests").glob("*")) if path.is_dir())
    left = [
        tuple(room for part in divided(name, 1) for room in part if not {room, name} & set(long))
        for name in (f"tests/{path.name}" for path in directories)
        if name not in {*QUICK, COMPUTED}
    ]
    return [*first, *filter(None, left)]


def parts_of(suite: str) -> list[tuple[str, ...]]:
    """A suite as it is, or divided into its `SUITE_PARTS`."""
    return divided(suite, SUITE_PARTS[suite]) if suite in SUITE_PARTS else [(suite,)]


def repeat_failed(tally: Tally, repeated_max: int = REPEATED_MAX) -> None:
    """Run the tests with real processes that failed once more, those of a file together and nothing beside them."""
    failed = [one for one in tally.failures if one.may_pass_alone]
    if len(failed) > repeated_max:
        return
    files = dict.fromkeys(one.name.partition("::")[0] for one in failed)
    for file in files:
        ids = tuple(dict.fromkeys(one.name for one in failed if one.name.startswith(f"{file}::")))
        print(f"once more, alone: {' '.join(ids)}", flush=True)
        ran = run_pytest(ids, ports=PORTS[0])
        print(ran.text, end="", flush=True)
        again = {one.name for one in ran.tally.failures}
        if ran.tally.passed + ran.tally.failed >= len(ids) and file not in again:
            tally.take_for_flaky([one for one in failed if one.name in set(ids) - again])


def say_lacks(lacks: tuple[Prerequisite, ...]) -> None:
    """One line for each program that is not here."""
    for lack in lacks:
        print(f"lacking: {lack.name}: {lack.remedy}; the tests marked `{lack.marker}` are skipped", flush=True)


def sum_up(tally: Tally, lacks: tuple[Prerequisite, ...], named_max: int = NAMED_MAX) -> int:
    """Name what was skipped and what failed, then the one line; the exit status."""
    for (suite, why), count in sorted(tally.reasons.items()):
        print(f"skipped: {suite}: {count}: {why}")
    say_lacks(lacks)
    if lacks and os.environ.get("CI") == "true":
        print("with CI=true what is lacking is a failure")
        tally.failed += len(lacks)
    for flaky in tally.flaky:
        print(f"flaky: {flaky}")
    for failure in tally.failures[:named_max]:
        print(f"failed: {failure}")
    if len(tally.failures) > named_max:
        print(f"failed: {len(tally.failures) - named_max} more")
    print(f"{tally.passed} passed, {tally.failed} failed, {tally.skipped} skipped")
    return 1 if tally.failed else 0


def say_slowest(tally: Tally, count: int = SLOWEST) -> None:
    """The slowest tests by their seconds, the slowest first."""
    for name, seconds in islice(tally.seconds.items(), count):
        print(f"{seconds:7.1f} s  {name}")


def main() -> int:
    """`check`, `test` or `test-all`."""
    match sys.argv[1:]:
        case [("check" | "test" | "test-all") as wanted]:
            pass
        case _:
            raise SystemExit("usage: python -m tools.run_tests check|test|test-all")
    lacks, tally = lacking(), Tally()
    say_lacks(lacks)
    chosen = affected.chosen() if wanted == "check" else None
    if chosen is not None:
        print(f"{len(chosen)} files of unit and property tests may notice what has changed; ALL=1 runs all", flush=True)
    run_quick(tally, MARKED[wanted], chosen)
    if wanted != "check":
        run_others(tally, MARKED[wanted])
        repeat_failed(tally)
    say_slowest(tally)
    print(*table(measured()), sep="\n")
    return sum_up(tally, lacks)


if __name__ == "__main__":
    sys.exit(main())
