"""`python -m e2e`: which tests it asks pytest for, and what it says of itself."""

import pytest

from e2e import cluster, images
from e2e.__main__ import main, pytest_words

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


@pytest.mark.parametrize("word", ["-h", "--help"])
def test_help_builds_nothing_and_starts_no_node(
    word: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for module, name in ((images, "build_all"), (cluster, "up"), (cluster, "down")):
        monkeypatch.setattr(module, name, lambda name=name: pytest.fail(f"{name} was called"))
    assert main([word]) == 0
    assert "--keep" in capsys.readouterr().out
