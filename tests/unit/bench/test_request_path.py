"""Every step of the request path can be called: what it calls changes with the broker."""

import asyncio
from pathlib import Path

import pytest

from bench.request_path import BATCHES, measure_all


def test_each_step_is_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asyncio.run(measure_all(rounds=1, where=tmp_path, calls_max=1))
    said = capsys.readouterr().out
    assert said.count("all of it (Dispatcher.begin)") == 2 * len(BATCHES)
