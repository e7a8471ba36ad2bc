"""What a controller has promised outlives one damaged file, and is kept where the log has lost it."""

import pytest

from kavka_broker.controller.quorum_state_file import COPY, SYNCED, QuorumStateFile
from kavka_broker.core.raft.quorum_state import FILE_NAME, QuorumState, UnreadableState, format_state
from tests.support.sim_disk import SimDisk

VOTED = QuorumState(7, -1, 2, b"d" * 16)


def disk() -> SimDisk:
    made = SimDisk()
    made.make_directory("/m")
    return made


@pytest.mark.parametrize("name", [FILE_NAME, COPY])
@pytest.mark.parametrize("data", [None, b"", bytes(90), b'{"leaderId":', format_state(QuorumState(7)).encode()])
def test_a_vote_survives_one_damaged_old_or_missing_file(name: str, data: bytes | None) -> None:
    here = disk()
    QuorumStateFile(here, "/m").save_state(VOTED)
    here.remove(f"/m/{name}")
    if data is not None:
        here.write_file(f"/m/{name}", data)
    assert QuorumStateFile(here, "/m").load_state() == VOTED


@pytest.mark.parametrize(("first", "second"), [(FILE_NAME, COPY), (COPY, FILE_NAME)])
def test_a_vote_is_written_twice_again_before_the_other_file_is_damaged(first: str, second: str) -> None:
    here = disk()
    QuorumStateFile(here, "/m").save_state(VOTED)
    here.write_file(f"/m/{first}", b"")
    assert QuorumStateFile(here, "/m").load_state() == VOTED
    here.write_file(f"/m/{second}", b"")
    assert QuorumStateFile(here, "/m").load_state() == VOTED


@pytest.mark.parametrize("name", [FILE_NAME, COPY])
def test_no_flipped_bit_changes_the_vote_within_its_epoch(name: str) -> None:
    here = disk()
    QuorumStateFile(here, "/m").save_state(VOTED)
    written = here.read_file(f"/m/{name}")
    for bit in range(8 * len(written)):
        flipped = bytearray(written)
        flipped[bit // 8] ^= 1 << bit % 8
        here.write_file(f"/m/{name}", bytes(flipped))
        found = QuorumStateFile(here, "/m").load_state()
        same_vote = (found.voted_id, found.voted_directory_id) == (VOTED.voted_id, VOTED.voted_directory_id)
        assert found.leader_epoch > VOTED.leader_epoch or (found.leader_epoch == VOTED.leader_epoch and same_vote), bit
        QuorumStateFile(here, "/m").save_state(VOTED)


def test_a_vote_with_both_files_lost_is_not_made_up() -> None:
    here = disk()
    QuorumStateFile(here, "/m").save_state(VOTED)
    for name in (FILE_NAME, COPY):
        here.write_file(f"/m/{name}", b"")
    with pytest.raises(UnreadableState, match="quorum-state"):
        QuorumStateFile(here, "/m").load_state()


def test_the_synced_offset_is_removed_before_a_cut_and_stays_when_the_log_lost_it() -> None:
    here = disk()
    promises = QuorumStateFile(here, "/m")
    promises.note_synced(1, 40, 0, 0)
    assert QuorumStateFile(here, "/m").synced_offset == 40
    broken = QuorumStateFile(here, "/m")
    broken.is_broken = True
    broken.forget_synced()
    assert QuorumStateFile(here, "/m").synced_offset == 40
    promises.forget_synced()
    assert not here.exists(f"/m/{SYNCED}")
    promises.note_synced(1, 40, 0, 1)  # the log was cut during the sync
    assert not here.exists(f"/m/{SYNCED}")
