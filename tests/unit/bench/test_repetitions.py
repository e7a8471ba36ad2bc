import pytest

from bench.repetitions import Spread, brief, lead, percentile


def test_spread_names_the_middle_and_the_ends() -> None:
    assert Spread.of([3.0, 1.0, 2.0]) == Spread(2.0, 1.0, 3.0)


@pytest.mark.parametrize(
    ("percent", "value"), [(0, 1.0), (1, 1.0), (50, 50.0), (99, 99.0), (99.9, 100.0), (100, 100.0)]
)
def test_percentile_is_the_nearest_rank(percent: float, value: float) -> None:
    assert percentile([float(number) for number in range(1, 101)], percent) == value


def test_percentile_of_one_value_is_that_value() -> None:
    assert percentile([7.0], 50) == 7.0


def test_lead_is_above_one_where_kavka_is_better_whichever_way_is_better() -> None:
    assert lead(200.0, 100.0, more_is_better=True) == 2.0
    assert lead(50.0, 100.0, more_is_better=False) == 2.0
    assert lead(100.0, 200.0, more_is_better=True) == 0.5


def test_nothing_has_no_lead() -> None:
    assert lead(0.0, 1.0, more_is_better=False) is None
    assert lead(1.0, 0.0, more_is_better=True) is None


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0"), (0.1234, "0.12"), (1.234, "1.23"), (12.34, "12.3"), (123.4, "123"), (1234.5, "1234")]
)
def test_brief_keeps_three_digits(value: float, text: str) -> None:
    assert brief(value) == text
