"""`python -m e2e`: which tests it asks pytest for."""

import pytest

from e2e.__main__ import pytest_words

ALWAYS = ["-q", "-p", "no:randomly"]


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        ([], ["e2e"]),
        (["--keep", "-k", "broker"], ["e2e", "-k", "broker"]),
        (["e2e/test_broker_image.py"], ["e2e/test_broker_image.py"]),
        (["-x", "e2e/test_broker_image.py::test_it"], ["-x", "e2e/test_broker_image.py::test_it"]),
    ],
)
def test_a_file_that_is_named_is_run_alone(words: list[str], asked: list[str]) -> None:
    assert pytest_words(words) == [*ALWAYS, *asked]
