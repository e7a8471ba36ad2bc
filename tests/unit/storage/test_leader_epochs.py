"""KIP-101, KIP-279: where the reign of each leader began and ended."""

import pytest

from kavka_broker.core.partition.leader_epochs import LeaderEpochs

ENTRIES = [(2, 10), (3, 20), (7, 30)]


@pytest.mark.parametrize(
    ("epoch", "end"),
    [
        (-1, (-1, -1)),
        (0, (0, 10)),  # older than anything known: the log's own history begins later
        (1, (1, 10)),
        (2, (2, 20)),
        (3, (3, 30)),
        (4, (3, 30)),
        (6, (3, 30)),
        (7, (7, 44)),
        (8, (-1, -1)),
    ],
)
def test_the_end_offset_of_an_epoch_is_where_the_next_begins(epoch: int, end: tuple[int, int]) -> None:
    assert LeaderEpochs(ENTRIES).end_offset(epoch, 44) == end


def test_nothing_is_known_of_an_empty_log() -> None:
    assert LeaderEpochs().end_offset(0, 0) == (-1, -1)
    assert LeaderEpochs().latest == -1


@pytest.mark.parametrize(("offset", "epoch"), [(9, -1), (10, 2), (19, 2), (20, 3), (29, 3), (30, 7), (99, 7)])
def test_the_epoch_at_an_offset_is_found(offset: int, epoch: int) -> None:
    assert LeaderEpochs(ENTRIES).epoch_at(offset) == epoch


def test_assign_only_goes_forward() -> None:
    epochs = LeaderEpochs(ENTRIES)
    assert not epochs.assign(7, 50)
    assert not epochs.assign(4, 50)
    assert epochs.assign(9, 50)
    assert epochs.entries[-1] == (9, 50)


def test_an_epoch_that_wrote_nothing_leaves_no_trace() -> None:
    epochs = LeaderEpochs(ENTRIES)
    epochs.assign(8, 40)
    epochs.assign(9, 40)
    assert epochs.entries == (*ENTRIES, (9, 40))


@pytest.mark.parametrize(("end", "left"), [(31, 3), (30, 2), (21, 2), (20, 1), (10, 0), (0, 0)])
def test_truncate_from_end_keeps_what_began_before(end: int, left: int) -> None:
    epochs = LeaderEpochs(ENTRIES)
    assert epochs.truncate_from_end(end) == (left < 3)
    assert epochs.entries == tuple(ENTRIES[:left])
    assert epochs.latest == (ENTRIES[left - 1][0] if left else -1)


@pytest.mark.parametrize(
    ("start", "left"),
    [
        (5, ENTRIES),
        (10, ENTRIES),
        (15, [(2, 15), (3, 20), (7, 30)]),
        (20, [(3, 20), (7, 30)]),
        (25, [(3, 25), (7, 30)]),
        (99, [(7, 99)]),
    ],
)
def test_truncate_from_start_moves_the_epoch_at_the_cut(start: int, left: list[tuple[int, int]]) -> None:
    epochs = LeaderEpochs(ENTRIES)
    assert epochs.truncate_from_start(start) == (left != ENTRIES)
    assert list(epochs.entries) == left
