"""`make check` over a made-up project: what passed, failed and was skipped is counted, and all of it is shown."""

from pathlib import Path

import pytest

from tools import run_tests
from tools.run_tests import (
    Tally,
    divided,
    quick_parts,
    repeat_failed,
    run_others,
    run_pytest,
    run_quick,
    say_slowest,
    suites_with_processes,
    sum_up,
)

GOOD = """\
import pytest

def test_good():
    pass

@pytest.mark.skip(reason="no such program")
def test_skipped():
    pass
"""
BAD = "def test_bad():\n    raise ValueError('a defect')\n"


SUITES = ("good", "bad")
TOOLS = {"well": ("python", "-c", "pass"), "ill": ("python", "-c", "raise SystemExit('it is wrong')")}


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, source in (("good", GOOD), ("bad", BAD)):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"test_{name}.py").write_text(source)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # no made-up test needs one, and each run loads them anew
    return tmp_path


def test_everything_is_counted_and_shown_whatever_failed_before(capfd: pytest.CaptureFixture[str]) -> None:
    tally = Tally()
    run_quick(tally, suites=SUITES, lint=TOOLS)
    assert (tally.passed, tally.failed, tally.skipped) == (2, 2, 1)
    assert [(why, count) for (_, why), count in tally.reasons.items()] == [("no such program", 1)]
    shown, _ = capfd.readouterr()
    for words in (
        "well             passed",
        "ill              FAILED",
        "it is wrong",
        "a defect",
        "1 passed, 1 skipped",
    ):
        assert words in shown


def test_what_failed_is_named_before_the_last_line(capfd: pytest.CaptureFixture[str]) -> None:
    tally = Tally()
    run_quick(tally, suites=SUITES, lint=TOOLS)
    capfd.readouterr()
    assert sum_up(tally, ()) == 1
    assert capfd.readouterr()[0].splitlines()[-3:] == [
        "failed: ill: its exit status is 1",
        "failed: bad/test_bad.py::test_bad: ValueError: a defect",
        "2 passed, 2 failed, 1 skipped",
    ]
    sum_up(tally, (), named_max=1)
    assert "failed: 1 more" in capfd.readouterr()[0]


def test_a_suite_that_ends_before_its_report_is_named_with_its_status(project: Path) -> None:
    (project / "bad" / "test_bad.py").write_text("import os\n\ndef test_bad():\n    os._exit(70)\n")
    ran = run_pytest(("bad",))
    assert (ran.tally.failed, [str(one) for one in ran.tally.failures]) == (1, ["bad: its exit status is 70"])


def test_what_one_suite_compiles_another_need_not(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    assert run_pytest(("good",)).tally.passed == 1
    assert list((project / "good" / "__pycache__").glob("test_good.*"))


@pytest.mark.parametrize(("command", "count"), [("check", 1), ("test", 2), ("test-all", 3)])
def test_each_command_leaves_out_what_another_one_runs(project: Path, command: str, count: int) -> None:
    marks = "\n".join(
        f"{mark}\ndef test_{name}():\n    pass\n"
        for name, mark in (
            ("short", ""),
            ("long", "@pytest.mark.thorough"),
            ("longest", "@pytest.mark.extended"),
        )
    )
    (project / "good" / "test_good.py").write_text(f"import pytest\n\n{marks}")
    (project / "pytest.ini").write_text("[pytest]\nmarkers =\n    thorough\n    extended\n")
    tally = Tally()
    run_quick(tally, run_tests.MARKED[command], suites=SUITES, lint=TOOLS)
    assert tally.passed - len(TOOLS) + 1 == count


def test_a_suite_of_which_nothing_is_left_has_not_failed(project: Path) -> None:
    assert run_pytest(("good",), marked="not tryfirst and nothing").tally.failed == 0
    (project / "empty").mkdir()
    assert run_pytest(("empty",)).tally.failed == 1


FAILS_ONCE = """\
from pathlib import Path

def test_flaky():
    seen = Path(__file__).with_suffix(".seen")
    first = not seen.exists()
    seen.touch()
    assert not first, "a race"

def test_broken():
    raise ValueError("a defect")
"""


def test_what_fails_beside_others_and_passes_alone_is_flaky(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for suite in ("conformance", "unit"):
        (project / "tests" / suite).mkdir(parents=True)
        (project / "tests" / suite / "test_it.py").write_text(FAILS_ONCE)
    tally = Tally()
    for suite in ("tests/conformance", "tests/unit"):
        tally.add(run_pytest((suite,)).tally)
    assert (tally.passed, tally.failed) == (0, 4)
    repeat_failed(tally)
    assert (tally.passed, tally.failed, [one.name for one in tally.flaky]) == (
        1,
        3,
        ["tests/conformance/test_it.py::test_flaky"],
    )
    sum_up(tally, ())
    said = capfd.readouterr()[0].splitlines()
    assert "flaky: tests/conformance/test_it.py::test_flaky: AssertionError: a race" in said
    assert "failed: tests/conformance/test_it.py::test_broken: ValueError: a defect" in said
    assert "failed: tests/unit/test_it.py::test_flaky: AssertionError: a race" in said


def test_very_many_failures_are_no_race(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (project / "tests" / "kube").mkdir(parents=True)
    (project / "tests" / "kube" / "test_it.py").write_text(FAILS_ONCE)
    tally = run_pytest(("tests/kube",)).tally
    repeat_failed(tally, repeated_max=1)
    assert (tally.failed, tally.flaky) == (2, [])
    assert "once more" not in capfd.readouterr()[0]


def test_the_slowest_tests_are_named(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (project / "good" / "test_good.py").write_text(
        "import time\n\ndef test_a():\n    pass\n\ndef test_b():\n    time.sleep(0.2)\n"
    )
    say_slowest(run_pytest(("good",)).tally, count=1)
    assert capfd.readouterr()[0].split() == ["0.2", "s", "good/test_good.py::test_b"]


def test_each_suite_runs_once_with_ports_of_its_own(
    project: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The long ones alone and first, what is left of a directory together, and what only computes behind them."""
    source = "import os\ndef test_ports():\n    assert '-' in os.environ['KAVKA_TEST_PORTS']\n"
    rooms = ("tests/conformance/a", "tests/conformance/b", "tests/conformance/long", "tests/kube", "tests/new")
    for name in (*rooms, "tests/sim", "tests/support"):
        (project / name).mkdir(parents=True)
    for name in rooms:
        (project / name / f"test_{Path(name).name}.py").write_text(source)
    for name in run_tests.COMPUTED_ALONE:
        (project / name).write_text("def test_a(): pass\n" * 10)
    (project / "tests" / "sim" / "test_loop.py").write_text("def test_b(): raise ValueError('a defect')\n")
    monkeypatch.delenv("KAVKA_TEST_PORTS", raising=False)
    long = ("tests/kube", "tests/conformance/long", "tests/gone")
    assert suites_with_processes(long) == [
        ("tests/kube/test_kube.py",),  # in parts, of which it has one
        ("tests/conformance/long",),
        ("tests/conformance/a", "tests/conformance/b"),
        ("tests/new/test_new.py",),
    ]
    tally = Tally()
    run_others(tally, long=long)
    assert (tally.passed, tally.failed) == (len(rooms) + 2, 1)
    shown, _ = capfd.readouterr()
    assert shown.count(" passed in ") == 6
    assert "a defect" in shown


def test_a_long_suite_is_there() -> None:
    root = Path(__file__).parents[3]
    assert [path for path in run_tests.LONG if not any((root / path).rglob("test_*.py"))] == []


def test_what_hangs_is_ended_and_what_it_said_is_kept() -> None:
    ran = run_pytest(("good",), seconds_max=0)
    assert ran.tally.failed == 1
    assert "good: ended after 0 s" in ran.text


def test_chosen_files_run_in_place_of_the_first_two_suites(project: Path) -> None:
    suites = ("unit", "property", "good")
    (project / "unit").mkdir()
    for name in ("a", "b"):
        (project / "unit" / f"test_{name}.py").write_text("def test_it(): pass\n")
    assert quick_parts(["unit/test_b.py"], suites) == [("unit/test_b.py",), ("good",)]
    assert quick_parts([], suites) == [("good",)]
    assert {path for part in quick_parts(None, suites) for path in part} == {
        "property",
        "unit/test_a.py",
        "unit/test_b.py",
        "good",
    }


def test_a_suite_is_divided_and_nothing_of_it_is_lost(project: Path) -> None:
    rooms = {"a": 900, "b": 500, "c": 300, "d": 50, "e": 40}
    for name, size in rooms.items():
        (project / "suite" / name).mkdir(parents=True)
        (project / "suite" / name / "test_it.py").write_text("#" * size)
        (project / "suite" / name / "fakes.py").write_text("#" * 5_000)
    (project / "suite" / "test_alone.py").write_text("#" * 20)
    (project / "suite" / "empty").mkdir()
    assert divided("suite", 4) == [
        ("suite/a",), ("suite/b",), ("suite/c",), ("suite/d", "suite/e", "suite/test_alone.py")
    ]  # fmt: skip
    assert divided("good", 4) == [("good/test_good.py",)]
    assert divided("nowhere", 4) == []
