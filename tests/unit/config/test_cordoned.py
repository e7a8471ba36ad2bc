"""Which log directories take no new replicas (KIP-1066)."""

import pytest

from kavka_broker.core.config.cordoned import check_cordoned, cordoned
from kavka_broker.core.config.definition import ConfigError

PATHS = ("/a", "/b")


def test_directories_are_cordoned_by_their_paths_or_all_at_once() -> None:
    assert cordoned((), PATHS) == []
    assert cordoned(("/b",), PATHS) == ["/b"]
    assert cordoned(("*",), PATHS) == ["/a", "/b"]


@pytest.mark.parametrize("names", [(), ("/a",), ("/b", "/a"), ("*",)])
def test_what_stands_for_directories_of_the_broker_is_taken(names: tuple[str, ...]) -> None:
    check_cordoned(names, PATHS)


@pytest.mark.parametrize(
    ("names", "problem"),
    [
        (("/c",), "cordoned.log.dirs: /c is not in log.dirs; write directories of /a,/b, or *"),
        (("*", "/a"), "cordoned.log.dirs: has * beside others; write * alone for every directory"),
    ],
)
def test_what_does_not_is_refused(names: tuple[str, ...], problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        check_cordoned(names, PATHS)
    assert str(caught.value) == problem


def test_a_controller_knows_no_paths() -> None:
    check_cordoned(("/c",))
    with pytest.raises(ConfigError):
        check_cordoned(("*", "/c"))
