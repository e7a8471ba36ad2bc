"""An API key is added in five steps: the places that CONTRIBUTING.md names exist, and its handler is a served one."""

import re
from typing import Final

from tests.tidy.tree import ROOT

SECTION: Final = re.compile(r"^## Add an API key in five steps\n(.*?)^## ", re.DOTALL | re.MULTILINE)
PLACE: Final = re.compile(r"`((?:broker|tests)/[\w/]+)`")
HANDLER: Final = re.compile(r"A whole handler, `(\w+\.py)`.*?```python\n(.*?)```", re.DOTALL)


def section() -> str:
    found = SECTION.search((ROOT / "CONTRIBUTING.md").read_text())
    assert found is not None
    return found[1]


def test_there_are_five_steps_and_their_places_exist() -> None:
    assert re.findall(r"^(\d)\. \*\*", section(), re.MULTILINE) == list("12345")
    places = PLACE.findall(section())
    assert len(places) == 5
    assert [place for place in places if not (ROOT / place).is_dir()] == []


def test_the_handler_of_the_document_is_the_one_that_is_served() -> None:
    found = HANDLER.search(section())
    assert found is not None
    assert (ROOT / "broker/kavka_broker/api" / found[1]).read_text() == found[2]
