"""Where a group begins again: within the log, whatever was asked for."""

from pathlib import Path

import pytest

from kavka_cli.offset_reset import documents, moves_to, rows
from tests.unit.operator.person import Person

STARTS = {("orders", 0): 100, ("orders", 1): 0}
ENDS = {("orders", 0): 1_500, ("orders", 1): 7}


@pytest.mark.parametrize(
    ("wanted", "offset"), [(0, 100), (99, 100), (700, 700), (1_500, 1_500), (9_999, 1_500), (-1, 1_500)]
)
def test_an_offset_outside_of_the_log_is_the_nearest_within(wanted: int, offset: int) -> None:
    (move,) = moves_to({("orders", 0): wanted}, {}, STARTS, ENDS)
    assert (move.committed, move.offset, move.lag) == (None, offset, 1_500 - offset)


def test_a_partition_whose_log_is_not_known_is_left_out() -> None:
    assert moves_to({("orders", 2): 0}, {}, STARTS, ENDS) == []


def test_moves_are_printed_beside_what_was_committed() -> None:
    moves = moves_to(dict.fromkeys(ENDS, 5), {("orders", 0): 1_400}, STARTS, ENDS)
    assert list(rows("etl", moves)) == [
        ["GROUP", "TOPIC", "PARTITION", "COMMITTED", "NEW", "LAG"],
        ["etl", "orders", "0", "1,400", "100", "1,400"],
        ["etl", "orders", "1", "none", "5", "2"],
    ]
    assert list(documents(moves))[1] == {
        "topic": "orders",
        "partition": 1,
        "committedOffset": None,
        "newOffset": 5,
        "lag": 2,
    }


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--reset-to", "start"), "name the one group that is meant: --group GROUP"),
        (("--delete", "-g", "a", "-g", "b"), "name the one group that is meant: --group GROUP"),
        (("--delete", "--reset-to", "5", "-g", "a"), "--reset-to and --delete do not go together"),
        (("-t", "orders"), "--topic goes with --reset-to"),
        (("-g", "a", "--reset-to", "start", "-o", "name"), "--reset-to prints a table or json"),
    ],
)
def test_options_that_do_not_go_together_are_refused(tmp_path: Path, words: tuple[str, ...], complaint: str) -> None:
    assert Person(tmp_path).types("groups", *words) == (1, f"error: {complaint}\n")
