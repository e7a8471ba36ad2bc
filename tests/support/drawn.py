"""What one commit plays and another does not: drawn by the commit, so that it is the same wherever it is tested."""

import random
import subprocess
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import TypeVar

import pytest

T = TypeVar("T")

ROOT = Path(__file__).parents[2]


@cache
def commit() -> str:
    """The commit that is checked out, in hexadecimal; a constant one outside of a repository."""
    asked = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, check=False, capture_output=True, text=True)
    return asked.stdout.strip() or "0" * 40


def in_turn(cases: Sequence[T], parts: int, name: Callable[[T], str] = str) -> list[object]:
    """Cases of a test of which `make test` plays one of so many parts, which the commit draws; the others are marked
    `extended`, so that `make test-all` plays them all.
    """
    numbers = range(len(cases))
    played = set(random.Random(commit()).sample(numbers, -(-len(cases) // parts)))
    marks: dict[bool, tuple[pytest.MarkDecorator, ...]] = {True: (), False: (pytest.mark.extended,)}
    return [pytest.param(cases[one], marks=marks[one in played], id=name(cases[one])) for one in numbers]


def is_turn(number: int, parts: int) -> bool:
    """Whether it is this one's turn, of so many that take turns by the commit."""
    return int(commit(), 16) % parts == number
