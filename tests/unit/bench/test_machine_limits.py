from pathlib import Path

from bench import machine_limits


def test_every_floor_is_measured_and_leaves_nothing_behind(tmp_path: Path) -> None:
    found = machine_limits.measure(tmp_path, machine_limits.Effort(echoes=20, syncs=5, writes=4))
    assert list(found) == ["floor_loopback_echo_us", "floor_fdatasync_ms", "floor_page_cache_write_mb_per_second"]
    assert all(value > 0 for value in found.values())
    assert list(tmp_path.iterdir()) == []
