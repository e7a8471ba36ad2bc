"""Flaky tests are mended within a week: docs/flaky.md names them, with the date by which each is mended."""

import re
import subprocess
from datetime import date, timedelta
from functools import cache

import pytest

from tests.tidy.tree import ROOT

PAGE = ROOT / "docs/flaky.md"
ROW = re.compile(r"^\| (tests/\S+) \| (\S+) \| (\S+) \| (.+) \|$", re.MULTILINE)
HEADING_OF_MENDED = "## Mended"
TIME_TO_MEND = timedelta(days=7)
TODAY = date(2026, 11, 29)

Row = tuple[str, date, date, str]  # the test, when it was found, by when it is mended or when it was, what is known


def rows(text: str) -> list[Row]:
    """The rows of a table of tests."""
    return [
        (test, date.fromisoformat(found), date.fromisoformat(mended), known)
        for test, found, mended, known in ROW.findall(text)
    ]


def overdue(page: str, on: date) -> list[str]:
    """What is wrong on a day with the tests that are to be mended."""
    open_rows, heading, _ = page.partition(HEADING_OF_MENDED)
    assert heading, f"there is no {HEADING_OF_MENDED!r}"
    late = [f"{test}: to be mended by {by}" for test, _, by, _ in rows(open_rows) if by < on]
    long = [
        f"{test}: more than a week to mend it" for test, found, by, _ in rows(open_rows) if by > found + TIME_TO_MEND
    ]
    return [*late, *long]


@cache
def date_of_commit() -> date:
    """The day of the commit that is checked out: a clone that is tested years later answers as it did on that day."""
    asked = ["git", "log", "-1", "--format=%cs"]
    return date.fromisoformat(
        subprocess.run(asked, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()
    )


def test_no_flaky_test_is_left_for_longer_than_a_week() -> None:
    assert overdue(PAGE.read_text(), date_of_commit()) == []


def test_rows_name_tests_that_exist_in_the_order_of_time() -> None:
    listed = rows(PAGE.read_text())
    assert len(listed) == PAGE.read_text().count("\n| tests/"), "a row is not read: | test | date | date | words |"
    for test, found, mended, known in listed:
        file, _, name = test.partition("::")
        assert (ROOT / file).is_file(), test
        assert not name or f"def {name.partition('[')[0]}(" in (ROOT / file).read_text(), test
        assert found <= mended, test
        assert known.strip(), test


@pytest.mark.parametrize(
    ("found", "by", "is_well"),
    [
        (TODAY, TODAY + TIME_TO_MEND, True),
        (TODAY, TODAY + TIME_TO_MEND + timedelta(days=1), False),
        (TODAY - TIME_TO_MEND, TODAY, True),
        (TODAY - TIME_TO_MEND, TODAY - timedelta(days=1), False),
    ],
)
def test_a_row_is_overdue_after_its_date_and_has_a_week_at_most(found: date, by: date, is_well: bool) -> None:
    row = f"| tests/kube/test_lease.py::test_it | {found} | {by} | it waits for a lease |\n"
    assert (overdue(f"{row}{HEADING_OF_MENDED}\n", TODAY) == []) == is_well
    assert overdue(f"{HEADING_OF_MENDED}\n{row}", TODAY) == []
