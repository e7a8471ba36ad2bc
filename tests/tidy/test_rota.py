"""Stories that take turns are there, each has its turn, and the turns weigh about the same."""

from itertools import chain

import pytest

from tests.support import drawn, rota
from tests.tidy.tree import ROOT

#: Of what the lightest turn weighs, the heaviest one.
UNEVEN_MAX = 1.1


@pytest.mark.parametrize("story", rota.SECONDS)
def test_a_story_that_takes_turns_is_there(story: str) -> None:
    file, _, name = story.partition("::")
    assert not name or f"def {name}(" in (ROOT / file).read_text()
    assert (ROOT / file).is_file()
    assert not name or file not in rota.SECONDS, "it stands there twice"


def test_each_group_has_its_turn_and_no_two_at_once() -> None:
    groups = rota.groups()
    assert sorted(chain(*groups)) == sorted(rota.SECONDS)
    commits = [f"{number:040x}" for number in range(len(groups))]
    assert [int(commit, 16) % len(groups) for commit in commits] == list(range(rota.GROUPS))
    played = [number for number in range(len(groups)) if drawn.is_turn(number, len(groups))]
    resting = frozenset(rota.SECONDS) - set(chain(*(groups[number] for number in played)))
    assert (len(played), rota.resting()) == (1, resting)


def test_turns_weigh_about_the_same() -> None:
    weights = [rota.weight(group) for group in rota.groups()]
    assert max(weights) <= UNEVEN_MAX * min(weights), weights
