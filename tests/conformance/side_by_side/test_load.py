"""What the load says of values that it has read, by what Apache Kafka's nodes have told of their refusals."""

from collections.abc import Sequence

import pytest

from tests.conformance.side_by_side.load import REFUSAL, misplaced

WORDS = (
    "OutOfOrderSequenceException: Out of order sequence number for producer 0 at offset 1765 in partition load-2: "
    "1767 (incoming seq. number), 1764 (current end sequence number)"
)
DOUBLED = (0, 1, 1, 2)


@pytest.mark.parametrize(
    ("values", "refusals", "place"),
    [
        ((0, 1, 2), (), None),
        ((0, 1), (), 2),
        ((0, 2), (), 1),
        ((1, 0, 2), (), 0),
        (DOUBLED, (), 2),
        (DOUBLED, (2,), None),
        (DOUBLED, (1,), None),
        (DOUBLED, (3,), 2),
        ((0, 1, 1, 1, 2), (2,), 3),
        ((0, 1, 0, 2), (2,), 3),
    ],
)
def test_values_count_up_and_go_back_behind_a_refusal_alone(
    values: Sequence[int], refusals: Sequence[int], place: int | None
) -> None:
    assert misplaced([*enumerate(values)], 3, refusals) == place


def test_a_refusal_is_found_in_a_log() -> None:
    assert REFUSAL.findall(WORDS) == [("1765", "2")]
