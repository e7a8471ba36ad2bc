"""Where a follower goes on: single rules at their bounds; the scenarios play them together."""

import pytest

from kavka_broker.core.partition.follower import Resume, resume, truncation_offset
from kavka_broker.core.partition.leader_epochs import NO_EPOCH, NO_OFFSET, EpochEnd, LeaderEpochs


@pytest.mark.parametrize(
    ("diverging", "offset"),
    [
        (EpochEnd(3, NO_OFFSET), 4),  # the leader knows nothing of epochs: up to the high watermark
        (EpochEnd(NO_EPOCH, 7), 7),
        (EpochEnd(NO_EPOCH, 70), 10),
        (EpochEnd(3, 8), 8),  # an epoch before all that are here
        (EpochEnd(3, 80), 10),
    ],
)
def test_a_follower_without_the_leaders_epoch_cuts_where_it_is_told(diverging: EpochEnd, offset: int) -> None:
    assert truncation_offset(diverging, LeaderEpochs(), 10, 4) == offset
    assert truncation_offset(EpochEnd(3, NO_OFFSET), LeaderEpochs(), 3, 4) == 3


@pytest.mark.parametrize(
    ("leader_start", "leader_end", "how", "offset"),
    [
        (0, 9, Resume.CUT, 9),
        (11, 20, Resume.RESTART, 11),
        (10, 20, Resume.GO_ON, 10),
        (0, 10, Resume.GO_ON, 10),
    ],
)
def test_the_way_on_at_its_bounds(leader_start: int, leader_end: int, how: Resume, offset: int) -> None:
    assert resume(leader_start, leader_end, 10) == (how, offset)
