"""Tests that take turns are there, and each has its turn."""

from itertools import chain

from tests.support import drawn, rota
from tests.tidy.tree import ROOT


def test_a_file_that_takes_turns_is_there_and_stands_in_one_group() -> None:
    files = list(chain(*rota.GROUPS))
    assert [file for file in files if not (ROOT / file).is_file()] == []
    assert len(set(files)) == len(files)


def test_each_group_has_its_turn_and_no_two_at_once() -> None:
    commits = [f"{number:040x}" for number in range(len(rota.GROUPS))]
    assert [int(commit, 16) % len(rota.GROUPS) for commit in commits] == list(range(len(rota.GROUPS)))
    played = [number for number in range(len(rota.GROUPS)) if drawn.is_turn(number, len(rota.GROUPS))]
    resting = frozenset(chain(*rota.GROUPS)) - set(chain(*(rota.GROUPS[number] for number in played)))
    assert (len(played), rota.resting()) == (1, resting)
