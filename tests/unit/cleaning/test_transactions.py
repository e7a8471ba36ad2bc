"""Which markers go with a cleaning."""

from kavka_broker.core.cleaning.transactions import CleanedTransactions
from kavka_broker.core.partition.transactions import Ended
from kavka_broker.protocol.records.control import ControlType

PRODUCER = 7


def test_the_marker_of_a_commit_goes_when_no_batch_of_it_is_left() -> None:
    log = CleanedTransactions([])
    assert not log.is_aborted(PRODUCER, 5)
    for is_empty in (True, False):
        other = CleanedTransactions([])
        assert other.marker_goes(PRODUCER, 6, ControlType.COMMIT, is_empty=is_empty)
    assert not log.marker_goes(PRODUCER, 6, ControlType.COMMIT, is_empty=True), "a batch of it stays"
    assert log.marker_goes(PRODUCER, 9, ControlType.COMMIT, is_empty=False), "of the next transaction nothing is left"


def test_a_control_batch_of_another_kind_goes_when_it_is_empty() -> None:
    log = CleanedTransactions([])
    assert not log.is_aborted(PRODUCER, 5)
    assert [log.marker_goes(PRODUCER, 6, None, is_empty=is_empty) for is_empty in (True, False)] == [True, False]


def test_the_marker_of_an_abort_stays_while_a_batch_of_it_is_met() -> None:
    ended = Ended(PRODUCER, 3, 6, 6, is_aborted=True)
    log = CleanedTransactions([ended])
    assert log.is_aborted(PRODUCER, 5)
    assert not log.marker_goes(PRODUCER, 6, ControlType.ABORT, is_empty=True)
    assert log.kept == [ended]
    assert CleanedTransactions([ended]).marker_goes(PRODUCER, 6, ControlType.ABORT, is_empty=False)
