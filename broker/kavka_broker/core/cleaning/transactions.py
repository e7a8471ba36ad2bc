"""Which records of transactions go with a cleaning, and which markers.

What a transaction wrote that was aborted goes at once. Its marker stays until nothing of it is left in the log, and so
does the marker of one that was committed: without it what is left would belong to the producer's next transaction.

Whoever cleans goes through the log twice, once to learn the newest offset of each key and once to write; each time with
a `CleanedTransactions` of its own, which is told of every batch in order.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from kavka_broker.core.partition.transactions import Ended
from kavka_broker.protocol.records.control import ControlType


@dataclass(slots=True)
class _Aborting:
    """An aborted transaction on the way to its marker, and whether a batch of it was met."""

    ended: Ended
    is_met: bool = False


class CleanedTransactions:
    """The transactions on the way through a log. `kept` are the aborted ones of which batches stay."""

    __slots__ = ("_aborted", "_aborting", "_committing", "kept")

    def __init__(self, aborted: Iterable[Ended]) -> None:
        self._aborted = deque(sorted(aborted, key=lambda transaction: transaction.first_offset))
        self._aborting: dict[int, _Aborting] = {}  # by producer id
        self._committing: dict[int, None] = {}  # producer ids of committed transactions of which a batch was met
        self.kept: list[Ended] = []
        assert all(ended.is_aborted for ended in self._aborted), "a transaction that was committed would go"

    def is_aborted(self, producer_id: int, last_offset: int) -> bool:
        """Note a transactional batch; whether its transaction was aborted."""
        self._begin_up_to(last_offset)
        aborting = self._aborting.get(producer_id)
        if aborting is None:
            self._committing[producer_id] = None
            return False
        aborting.is_met = True
        return True

    def marker_goes(self, producer_id: int, offset: int, kind: ControlType | None, *, is_empty: bool) -> bool:
        """Note a control batch; whether nothing of its transaction is left, as where it `is_empty` already."""
        self._begin_up_to(offset)
        if kind is ControlType.ABORT:
            aborting = self._aborting.pop(producer_id, None)
            if aborting is None or not aborting.is_met:
                return True
            self.kept.append(aborting.ended)
            return False
        if kind is ControlType.COMMIT:
            return self._committing.pop(producer_id, self) is self
        return is_empty

    def _begin_up_to(self, offset: int) -> None:
        while self._aborted and self._aborted[0].first_offset <= offset:
            ended = self._aborted.popleft()
            assert ended.first_offset <= ended.last_offset, ended
            self._aborting.setdefault(ended.producer_id, _Aborting(ended))
