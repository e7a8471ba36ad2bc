"""`python -m e2e`: which tests it asks pytest for, and what it says of itself."""

import pytest

from e2e import cluster, images
from e2e.__main__ import main, pytest_words, wanted_images

ALWAYS = ["-q", "-p", "no:randomly"]


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        ([], ["e2e"]),
        (["--keep", "-k", "broker"], ["e2e", "-k", "broker"]),
        (["--images", "broker,operator", "-x"], ["e2e", "-x"]),
        (["e2e/test_broker_image.py"], ["e2e/test_broker_image.py"]),
        (["-x", "e2e/test_broker_image.py::test_it"], ["-x", "e2e/test_broker_image.py::test_it"]),
    ],
)
def test_a_file_that_is_named_is_run_alone(words: list[str], asked: list[str]) -> None:
    assert pytest_words(words) == [*ALWAYS, *asked]


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (["-x"], ["broker", "operator", "audit", "audit-spark", "former"]),
        (["--images", "operator,former"], ["operator", "former"]),
    ],
)
def test_images_that_are_named_are_built_alone(words: list[str], wanted: list[str]) -> None:
    assert wanted_images(words) == wanted


@pytest.mark.parametrize("words", [["--images"], ["--images", "brokr"]])
def test_an_image_of_no_such_name_is_refused(words: list[str]) -> None:
    with pytest.raises(SystemExit, match="write some of broker,operator,audit,audit-spark,former"):
        wanted_images(words)


@pytest.mark.parametrize("word", ["-h", "--help"])
def test_help_builds_nothing_and_starts_no_node(
    word: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for module, name in ((images, "build_all"), (cluster, "up"), (cluster, "down")):
        monkeypatch.setattr(module, name, lambda name=name: pytest.fail(f"{name} was called"))
    assert main([word]) == 0
    assert "--keep" in capsys.readouterr().out
