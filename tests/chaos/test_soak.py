"""A short soak in strangers, and what its judge finds. `make chaos ARGS=--strangers` is the long one."""

from pathlib import Path

import pytest

from tests.chaos.soak import GROWTH_BYTES_MAX, P99_MS_LEAST, Report, run
from tests.chaos.strangers import VISITS


@pytest.mark.slow
@pytest.mark.extended
def test_memory_is_flat_and_a_known_client_feels_nothing_while_strangers_come_and_go(tmp_path: Path) -> None:
    report = run(tmp_path, 0.5, print)
    assert report.judge() == [], report.text()
    assert set(report.visits) == {kind.__name__ for kind in VISITS}
    assert all(report.visits.values())


def soaked(**changed: object) -> Report:
    report = Report(
        1, calm_p99_ms=100, p99_ms=300, warm_bytes=1_000, resident_bytes=[1_000, 1_000 + GROWTH_BYTES_MAX, 0]
    )
    for name, value in changed.items():
        setattr(report, name, value)
    return report


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({}, ""),
        ({"resident_bytes": [1_000, 1_001 + GROWTH_BYTES_MAX, 0]}, "memory grew by 20.0 MiB"),
        ({"p99_ms": 301.0}, "p99 of the known client 301 ms, and 100 ms before strangers"),
        ({"calm_p99_ms": 1.0, "p99_ms": P99_MS_LEAST}, ""),
        ({"calm_p99_ms": 1.0, "p99_ms": P99_MS_LEAST + 1}, "p99 of the known client"),
        ({"throttled": 1}, "waited 1 times for a quota"),
        ({"failures": ["lost"]}, "lost"),
    ],
)
def test_the_judge_of_a_soak_has_teeth(changed: dict[str, object], words: str) -> None:
    report = soaked(**changed)
    found = report.judge()
    assert [words in line for line in found] == [True] * bool(words)
    assert (found or ["memory is flat"])[0] in report.text()
