"""What a bench of quotas makes of its samples."""

import pytest

from bench.quotas import Sample, figures_of, whole_waves

LIMIT = 1000


def in_waves(waves: int, seconds: int = 10) -> list[Sample]:
    """All of a wave's bytes in its first second, then nothing; a sample each second."""
    return [Sample(at, LIMIT * seconds * (at // seconds + 1)) for at in range(waves * seconds)]


def test_a_client_that_moves_in_waves_reaches_its_limit_over_whole_ones() -> None:
    samples = in_waves(5)
    found = figures_of([Sample(0, 0), *samples[1:]], LIMIT, 15)
    assert found["of_limit_later"] == pytest.approx(1.0)
    assert (found["burst_seconds"], found["stall_seconds"]) == (10.0, 9)


def test_a_steady_client_is_judged_over_all_of_its_time() -> None:
    samples = [Sample(at / 10, at * LIMIT // 10) for at in range(400)]
    assert whole_waves(samples) == (samples[0], samples[-1])
    assert figures_of(samples, LIMIT, 15)["of_limit_later"] == pytest.approx(1.0, abs=0.01)


def test_the_least_and_the_most_of_its_connections_stand_side_by_side() -> None:
    samples = [Sample(at, 4 * at, (at, 3 * at)) for at in range(20)]
    assert figures_of(samples, LIMIT, 5)["spread"] == pytest.approx(1 / 3)
