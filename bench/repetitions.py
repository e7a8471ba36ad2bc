"""Few repetitions of a noisy measure, told honestly: the median, and the least and the greatest seen."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True, slots=True)
class Spread:
    """The middle and the ends of some repetitions."""

    median: float
    least: float
    greatest: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        return cls(median(values), min(values), max(values))


def percentile(ordered: Sequence[float], percent: float) -> float:
    """The value that `percent` of the values, given in order, do not exceed (nearest rank)."""
    assert ordered, "a percentile of nothing"
    rank = -(-len(ordered) * percent // 100)
    return ordered[max(0, min(len(ordered), int(rank)) - 1)]


def lead(kavka: float, kafka: float, *, more_is_better: bool) -> float | None:
    """How far Kavka is ahead: above 1 it is better, whichever way better points. None where one of them is nothing."""
    if kavka <= 0 or kafka <= 0:
        return None
    return kavka / kafka if more_is_better else kafka / kavka


def brief(value: float) -> str:
    """Three significant digits, without an exponent."""
    if value == 0:
        return "0"
    if abs(value) >= 100:
        return f"{value:.0f}"
    return f"{value:.2f}" if abs(value) < 10 else f"{value:.1f}"
