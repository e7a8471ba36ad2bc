"""Where a follower stands, and which voters are in force where."""

import pytest

from kavka_broker.core.raft.log_view import Agrees, Diverges, SnapshotId, Standing, TooOld, standing
from kavka_broker.core.raft.replicas import CAUGHT_UP_WITHIN_MS, OBSERVERS_MAX, Replicas
from kavka_broker.core.raft.voter_history import VoterHistory
from kavka_broker.core.raft.voters import Voter
from tests.unit.raft.memory_log import Batch, MemoryLog
from tests.unit.raft.world import voter


def log(*batches: tuple[int, int, int], snapshot: SnapshotId | None = None) -> MemoryLog:
    pieces = {} if snapshot is None else {snapshot: b"all of it"}
    start_offset = batches[0][0] if batches else (snapshot.end_offset if snapshot else 0)
    return MemoryLog(start_offset, 0, [Batch(*batch, b"") for batch in batches], pieces)


WHOLE = log((0, 3, 1), (3, 5, 1), (5, 9, 4))
CUT = log((5, 9, 4), snapshot=SnapshotId(5, 1))
EMPTIED = log(snapshot=SnapshotId(5, 1))


@pytest.mark.parametrize(
    ("leader", "offset", "epoch", "expected"),
    [
        (WHOLE, 0, 0, Agrees()),
        (WHOLE, 3, 1, Agrees()),
        (WHOLE, 5, 1, Agrees()),
        (WHOLE, 9, 4, Agrees()),
        (WHOLE, 6, 1, Diverges(1, 5)),  # more of epoch 1 than there is
        (WHOLE, 12, 4, Diverges(4, 9)),
        (WHOLE, 7, 3, Diverges(1, 5)),  # an epoch that the leader never saw: the one before it
        (WHOLE, 5, 5, Diverges(4, 9)),
        (WHOLE, 2, 0, Diverges(0, 0)),
        (CUT, 9, 4, Agrees()),
        (CUT, 5, 1, Agrees()),
        (CUT, 0, 0, TooOld(SnapshotId(5, 1))),
        (CUT, 4, 1, TooOld(SnapshotId(5, 1))),
        (CUT, 5, 0, TooOld(SnapshotId(5, 1))),
        (CUT, 7, 3, Diverges(1, 5)),
        (EMPTIED, 5, 1, Agrees()),
        (EMPTIED, 6, 1, Diverges(1, 5)),
    ],
)
def test_an_offset_and_epoch_stand_or_diverge_in_the_log(
    leader: MemoryLog, offset: int, epoch: int, expected: Standing
) -> None:
    assert standing(leader, offset, epoch) == expected


def test_an_older_snapshot_beside_the_one_the_log_begins_behind_changes_nothing() -> None:
    leader = log((5, 9, 4), snapshot=SnapshotId(5, 1))
    leader.pieces[SnapshotId(2, 1)] = b"older"
    assert standing(leader, 5, 1) == Agrees()


def voters(*ids: int) -> tuple[Voter, ...]:
    return tuple(map(voter, ids))


def test_voters_count_from_their_record_on_and_go_with_it() -> None:
    history = VoterHistory.of(voters(1), kraft_version=1)
    history.add_voters(4, voters(1, 2))
    history.add_voters(9, voters(1, 2, 3))
    assert (history.voters, history.voters_offset) == (voters(1, 2, 3), 9)
    assert history.at(9) == (voters(1, 2), 1)
    assert history.open_sets(4) == [voters(1), voters(1, 2), voters(1, 2, 3)]
    assert history.open_sets(5) == [voters(1, 2), voters(1, 2, 3)]
    assert history.open_sets(10) == [voters(1, 2, 3)]
    history.truncate(9)
    assert (history.voters, history.voters_offset) == (voters(1, 2), 4)
    history.truncate(0)
    assert (history.voters, history.voters_offset) == (voters(1), -1)


def test_what_can_no_longer_be_cut_away_is_forgotten() -> None:
    history = VoterHistory.of(voters(1), kraft_version=0)
    history.add_version(2, 1)
    history.add_voters(4, voters(1, 2))
    history.add_voters(9, voters(1, 2, 3))
    history.forget_below(5)
    assert history.sets == [(4, voters(1, 2)), (9, voters(1, 2, 3))]
    assert history.versions == [(2, 1)]


def test_a_majority_has_the_records_of_the_leader_and_enough_voters() -> None:
    replicas = Replicas(start_ms=0)
    three = voters(1, 2, 3)
    assert replicas.committed(three, 1, 10) == 0
    replicas.fetched((2, voter(2).directory_id), 7, 10, 5)
    assert replicas.committed(three, 1, 10) == 7
    replicas.fetched((3, voter(3).directory_id), 12, 12, 5)
    assert replicas.committed(three, 1, 10) == 10
    # Another disk of the same node has nothing to say for the voter.
    replicas.fetched((2, b"\x77" * 16), 99, 99, 5)
    assert replicas.committed(three, 1, 10) == 10
    # A leader that was removed has no vote.
    assert replicas.committed(voters(2, 3), 1, 99) == 7


def test_a_voter_named_without_a_directory_is_known_by_its_id_and_its_last_fetch() -> None:
    replicas = Replicas(start_ms=0)
    nameless = Voter(2, bytes(16), ())
    assert replicas.of(nameless) is None
    replicas.fetched((2, b"a" * 16), 3, 9, 5)
    replicas.fetched((2, b"b" * 16), 7, 9, 8)
    replicas.fetched((3, b"c" * 16), 9, 9, 9)
    found = replicas.of(nameless)
    assert found is not None
    assert (found.directory_id, found.end_offset) == (b"b" * 16, 7)


def test_a_majority_that_was_heard() -> None:
    replicas = Replicas(start_ms=100)
    assert replicas.majority_heard_ms(voters(1), 1, 900) == 900
    assert replicas.majority_heard_ms(voters(1, 2, 3), 1, 900) == 100
    replicas.fetched((3, voter(3).directory_id), 0, 0, 700)
    assert replicas.majority_heard_ms(voters(1, 2, 3), 1, 900) == 700
    assert replicas.majority_heard_ms(voters(1, 2, 3, 4, 5), 1, 900) == 100


def test_caught_up_means_having_had_all_and_not_long_ago() -> None:
    replicas, key = Replicas(start_ms=0), (4, voter(4).directory_id)
    assert not replicas.has_caught_up(key, 10)
    replicas.fetched(key, 3, 8, 10)
    assert not replicas.has_caught_up(key, 10)
    # It has all that there was when it last asked, though more was written since.
    replicas.fetched(key, 8, 9, 20)
    assert replicas.has_caught_up(key, 20)
    assert not replicas.has_caught_up(key, 20 + CAUGHT_UP_WITHIN_MS)


def test_observers_are_bounded() -> None:
    replicas = Replicas(start_ms=0)
    for node_id in range(OBSERVERS_MAX + 5):
        replicas.fetched((node_id, bytes(16)), 0, 0, 1)
    assert len(replicas.by_key) == OBSERVERS_MAX
    replicas.fetched((-1, bytes(16)), 0, 0, 1)
    assert (-1, bytes(16)) not in replicas.by_key
    # Whoever has a vote is counted all the same: without it nothing might be committed.
    assert replicas.fetched((9_998, bytes(16)), 0, 0, 1, votes=True) is not None
    # Those that are silent make room.
    replicas.fetched((9_999, bytes(16)), 0, 0, 1 << 40)
    assert list(replicas.by_key) == [(9_999, bytes(16))]
