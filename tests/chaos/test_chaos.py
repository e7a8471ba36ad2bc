"""A short run of the chaos: each of a few faults once, judged as the long run is. `make chaos` is the long one.

The simulation plays the same faults in every `make test`; here the kernel is a real one. The runs take turns
(`tests/support/rota.py`).
"""

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from kavka_broker.protocol.records.batch import set_base_offset
from kavka_broker.protocol.records.record import build_batch
from tests.chaos.copies import copies
from tests.chaos.damage import metadata_files, strike
from tests.chaos.power import CHECKPOINT, METADATA_LOG, lose_unsynced, position_of
from tests.sim.history import History

ROOT = Path(__file__).parents[2]
RUN_SECONDS_MAX = 900
PLACE = ("t", 0)


def chaos(directory: Path, *arguments: str) -> str:
    """Run it in a process of its own, which moves into namespaces where it may; what it says. Logs stay for a while."""
    ran = subprocess.run(
        [sys.executable, "-m", "tests.chaos", "--short", "--keep", str(directory / "nodes"), *arguments],
        cwd=ROOT, env={**os.environ}, capture_output=True, text=True, check=False, timeout=RUN_SECONDS_MAX,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def test_nothing_acknowledged_is_lost_when_processes_die_or_stop(tmp_path: Path) -> None:
    said = chaos(
        tmp_path, "--transactions", "--only", "kill-leader", "--only", "pause-leader", "--only", "lose-power",
        "--only", "stop-one",
    )  # fmt: skip
    assert "nothing lost, duplicated, reordered or inconsistent" in said
    assert "transactions committed" in said


@pytest.mark.root
def test_nothing_acknowledged_is_lost_when_the_network_is_cut_or_a_disk_is_full(tmp_path: Path) -> None:
    said = chaos(tmp_path, "--only", "isolate", "--only", "bridge", "--only", "deaf", "--only", "fill-disk")
    assert "nothing lost, duplicated, reordered or inconsistent" in said
    assert "left out" not in said


@pytest.mark.root
def test_nothing_acknowledged_is_lost_when_directories_fail_files_are_damaged_and_packets_come_late(
    tmp_path: Path,
) -> None:
    said = chaos(
        tmp_path, "--only", "fail-directory", "--only", "start-without-directory", "--only", "damage-file",
        "--only", "late-packets", "--only", "slow-node",
    )  # fmt: skip
    assert "nothing lost, duplicated, reordered or inconsistent" in said
    assert "left out" not in said


@pytest.mark.parametrize("seed", range(20))
def test_damage_harms_one_file_of_one_log(tmp_path: Path, seed: int) -> None:
    names = ("t-0", "t-1", METADATA_LOG, "t-2.0000-delete")
    whole = {f"{name}/0.{suffix}": f"{name} {suffix}".encode() * 100 for name in names for suffix in ("log", "index")}
    for name, content in whole.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)

    what = strike([tmp_path], random.Random(seed))

    found = {str(path.relative_to(tmp_path)): path.read_bytes() for path in tmp_path.rglob("0.*")}
    (harmed,) = (name for name, content in whole.items() if found.get(name) != content)
    assert harmed.startswith(("t-0/", "t-1/", f"{METADATA_LOG}/")), what
    assert set(found) <= set(whole)


@pytest.mark.parametrize(
    ("logs", "snapshots", "spare"),
    [
        (["0"], ["3-1", "7-2"], "7-2"),  # the log still has all of it
        (["3", "7"], ["3-1", "7-2"], "7-2"),  # the older one does, and the log behind it
        (["7"], ["3-1", "7-2"], None),
        (["7"], ["7-2"], None),
    ],
)
def test_the_snapshot_that_a_voter_needs_is_not_damaged(
    tmp_path: Path, logs: list[str], snapshots: list[str], spare: str | None
) -> None:
    for base in logs:
        (tmp_path / f"{int(base):020}.log").write_bytes(b"a log")
    for end_offset, epoch in (snapshot.split("-") for snapshot in snapshots):
        (tmp_path / f"{int(end_offset):020}-{int(epoch):010}.checkpoint").write_bytes(b"a snapshot")

    found = [path.name for path in metadata_files(tmp_path, "*.checkpoint")]

    end_offset, _, epoch = (spare or "0-0").partition("-")
    assert found == ([f"{int(end_offset):020}-{int(epoch):010}.checkpoint"] if spare else [])


def test_a_loss_of_power_takes_what_was_not_synced_and_nothing_else(tmp_path: Path) -> None:
    batches = [bytes(build_batch([(None, b"value")] * 3, base_offset=3 * number)) for number in range(10)]
    (tmp_path / CHECKPOINT).write_text("0\n1\nt 0 12\n")
    for name in ("t-0", METADATA_LOG):
        log = tmp_path / name
        log.mkdir()
        (log / "00000000000000000000.log").write_bytes(b"".join(batches[:5]))
        (log / "00000000000000000015.log").write_bytes(b"".join(batches[5:]))
        (log / "00000000000000000000.index").write_bytes(b"")
    first = tmp_path / "t-0" / "00000000000000000000.log"
    assert position_of(first, 12) == len(b"".join(batches[:4]))
    for seed in range(40):
        lose_unsynced(tmp_path, random.Random(seed))
        assert first.read_bytes().startswith(b"".join(batches[:4]))
    second = tmp_path / "t-0" / "00000000000000000015.log"
    assert first.stat().st_size < len(b"".join(batches[:5]))
    assert second.stat().st_size == 0, "what follows a cut cannot have survived it"
    assert (tmp_path / METADATA_LOG / "00000000000000000015.log").read_bytes() == b"".join(batches[5:])


def history(*acknowledged: tuple[str, int]) -> History:
    made = History()
    for value, offset in acknowledged:
        made.sent("p", PLACE, [value])
        made.acknowledged([value], offset)
    return made


@pytest.mark.parametrize(
    ("told", "found", "anomaly"),
    [
        ([("a", 0), ("b", 1)], {0: "a", 1: "b"}, None),
        ([("a", 0), ("b", 1)], {0: "a"}, "unseen"),
        ([("a", 0), ("b", 1)], {1: "b"}, "lost-write"),
        ([("a", 0), ("b", 1)], {0: "a", 1: "b", 2: "a"}, "duplicate"),
        ([("a", 0), ("b", 1)], {0: "b", 1: "a"}, "inconsistent-offsets"),
        ([("a", 1), ("b", 0)], {0: "b", 1: "a"}, "nonmonotonic-send"),
        ([("a", 0)], {0: "a", 1: "x"}, "phantom"),
    ],
)
def test_the_judge_has_teeth(told: list[tuple[str, int]], found: dict[int, str], anomaly: str | None) -> None:
    judged = history(*told)
    judged.read_finally(PLACE, found)
    anomalies = judged.anomalies()
    assert any(line.startswith(anomaly) for line in anomalies) if anomaly else not anomalies


def test_copies_of_a_record_are_told_by_their_batches(tmp_path: Path) -> None:
    batches = [
        build_batch([(None, b"a"), (None, b"b")], base_offset=0, producer_id=7, producer_epoch=epoch, base_sequence=3)
        for epoch in (0, 1)
    ]
    set_base_offset(batches[1], 2)
    data = {node_id: [tmp_path / f"{node_id}"] for node_id in (1, 2, 3)}
    for node_id, content in ((1, b"".join(batches)), (2, b"".join(batches) + bytes(4096)), (3, bytes(batches[0]))):
        log = tmp_path / f"{node_id}" / "t-0"
        log.mkdir(parents=True)
        (log / "00000000000000000000.log").write_bytes(content)

    first, second = copies(data, PLACE, 1), copies(data, PLACE, 3)

    assert "t-0@1: producer id 7, epoch 0, sequence 4 of a batch from base sequence 3 to 4 at 0 to 1," in first[0]
    assert first[0].endswith("; on 1, 2, 3")
    assert "t-0@3: producer id 7, epoch 1, sequence 4 of a batch from base sequence 3 to 4 at 2 to 3," in second[0]
    assert second[0].endswith("; on 1, 2")
    assert copies(data, PLACE, 4) == ["t-0@4: on no node"]
