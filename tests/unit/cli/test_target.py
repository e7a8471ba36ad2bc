"""Which cluster a command asks: by its name, and whether this machine can know its brokers."""

import pytest

from kavka_cli.app import parser
from kavka_cli.output import CommandError
from kavka_cli.target import check_is_inside


def test_brokers_that_only_pods_know_are_told_with_a_way_to_reach_them() -> None:
    with pytest.raises(CommandError) as told:
        check_is_inside("main", "main-bootstrap.default.svc:9092")
    assert 'the brokers of "main" have names that only pods know (main-bootstrap.default.svc)' in str(told.value)
    assert "kavka ... --bootstrap main-bootstrap.default.svc:9092`" in str(told.value)
    check_is_inside("main", "127.0.0.1:9092")
    check_is_inside("main", "[::1]:9092,nowhere.invalid:9092")


@pytest.mark.parametrize(
    "words",
    [
        ("doctor",),
        ("export",),
        ("top",),
        ("explain", "quota"),
        ("quota", "recommend"),
        ("audit", "verify"),
    ],
    ids="-".join,
)
def test_a_cluster_is_named_as_for_get_or_by_an_option(words: tuple[str, ...]) -> None:
    assert parser().parse_args([*words, "main"]).name == "main"
    assert parser().parse_args([*words, "--cluster", "main"]).cluster == "main"
