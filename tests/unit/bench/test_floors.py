from pathlib import Path

import pytest

from bench import floors


def test_every_floor_is_measured_and_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(floors, "ECHOES", 20)
    monkeypatch.setattr(floors, "SYNCS", 5)
    monkeypatch.setattr(floors, "WRITTEN_BYTES", 4 * floors.WRITE_BYTES)
    found = floors.measure(tmp_path)
    assert list(found) == ["floor_loopback_echo_us", "floor_fdatasync_ms", "floor_page_cache_write_mb_per_second"]
    assert all(value > 0 for value in found.values())
    assert list(tmp_path.iterdir()) == []
