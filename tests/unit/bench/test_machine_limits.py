from pathlib import Path

import pytest

from bench import machine_limits


def test_every_floor_is_measured_and_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_limits, "ECHOES", 20)
    monkeypatch.setattr(machine_limits, "SYNCS", 5)
    monkeypatch.setattr(machine_limits, "WRITTEN_BYTES", 4 * machine_limits.WRITE_BYTES)
    found = machine_limits.measure(tmp_path)
    assert list(found) == ["floor_loopback_echo_us", "floor_fdatasync_ms", "floor_page_cache_write_mb_per_second"]
    assert all(value > 0 for value in found.values())
    assert list(tmp_path.iterdir()) == []
