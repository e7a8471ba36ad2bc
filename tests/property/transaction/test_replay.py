"""What a coordinator knows is what its log says, whatever a correct cleaner has taken out of it."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from kavka_broker.coordinator.transactions.transaction_loading import decode
from kavka_broker.core.transaction.ending import End, complete, end, told
from kavka_broker.core.transaction.partitions import add_partitions
from kavka_broker.core.transaction.producers import Init, fence, initialize
from kavka_broker.core.transaction.records import framed, tombstone
from kavka_broker.core.transaction.state import EPOCH_EXHAUSTED, NO_EPOCH, Standing, Transaction, TransactionState
from kavka_broker.core.transaction.timeouts import is_expired, is_overdue
from kavka_broker.protocol.errors import BrokerError
from kavka_broker.protocol.records.record import Record

IDS = ("a", "b", "c")
STEPS = ("init", "go on", "add", "commit", "abort", "again", "mark", "overdue", "expire")
EXPIRATION_MS, TIMEOUT_MS = 300, 50


class Coordinator:
    """A coordinator whose every record is committed at once."""

    def __init__(self, first_epoch: int) -> None:
        self.now_ms = 1_000
        self.live: dict[str, Transaction] = {}
        self.log: list[Record] = []
        self._first_epoch = first_epoch
        self._last_id = 100
        self._told: dict[str, tuple[int, int]] = {}
        self._last_end: dict[str, End] = {}

    def fresh_id(self) -> int:
        self._last_id += 1
        return self._last_id

    def step(self, name: str, what: str, version: int, index: int) -> None:
        self.now_ms += 10
        transaction = self.live.get(name)
        try:
            following = self._following(name, transaction, what, version, index)
        except BrokerError:
            return
        if following is None:
            return
        transaction = self.live[name]
        transaction.begin(following)
        transaction.finish()
        self._write(*framed(name, following, 2))
        self._told[name] = told(following)

    def _following(
        self, name: str, transaction: Transaction | None, what: str, version: int, index: int
    ) -> Standing | None:
        producer = self._told.get(name, (0, 0))
        match what:
            case "init" | "go on":
                if transaction is None:
                    born = Standing(self.fresh_id(), NO_EPOCH, TIMEOUT_MS, updated_ms=self.now_ms)
                    transaction = self.live[name] = Transaction(name, born)
                    following = initialize(transaction, Init(TIMEOUT_MS), self.fresh_id(), version, self.now_ms)
                    if self._first_epoch:
                        transaction.standing = replace(born, producer_epoch=self._first_epoch - 1)
                        following = replace(following, producer_epoch=self._first_epoch)
                    return following
                init = Init(TIMEOUT_MS, producer if what == "go on" else None)
                return initialize(transaction, init, self.fresh_id(), version, self.now_ms)
            case "add":
                return add_partitions(transaction, producer, [("t", index)], version, self.now_ms)
            case "commit" | "abort":
                self._last_end[name] = End(*producer, what == "commit", version)
                return end(transaction, self._last_end[name], self.fresh_id(), self.now_ms)
            case "again" if name in self._last_end:
                return end(transaction, self._last_end[name], self.fresh_id(), self.now_ms)
            case "mark" if transaction is not None and transaction.standing.state.is_prepared:
                return complete(transaction.standing, self.now_ms)
            case "overdue" if transaction is not None and is_overdue(transaction, self.now_ms + TIMEOUT_MS):
                return fence(transaction.standing, self.fresh_id(), version, self.now_ms)
            case "expire" if transaction is not None and is_expired(transaction, 0, self.now_ms + EXPIRATION_MS):
                del self.live[name]
                self._write(*tombstone(name))
        return None

    def _write(self, key: bytes, value: bytes | None) -> None:
        self.log.append(Record(len(self.log), self.now_ms, key, value, []))


def replay(log: list[Record]) -> dict[str, Standing]:
    latest = {record.key: record for record in log}
    found = [transaction for record in latest.values() if (transaction := decode(record)) is not None]
    return {transaction.transactional_id: transaction.standing for transaction in found}


def cleaned(log: list[Record], taken: set[int]) -> list[Record]:
    """The log without some of the records that later ones of their keys replace, and of tombstones in their place."""
    last = {record.key: record.offset for record in log}
    kept = [record for record in log if record.offset == last[record.key] or record.offset not in taken]
    first = {record.key: record.offset for record in reversed(kept)}
    # A tombstone goes when nothing is left that it deletes.
    return [
        record
        for record in kept
        if record.value is not None or record.offset not in taken or first[record.key] != record.offset
    ]


@settings(max_examples=200, deadline=None)
@given(
    steps=st.lists(
        st.tuples(
            st.sampled_from(IDS), st.sampled_from(STEPS), st.sampled_from((0, 2)), st.integers(min_value=0, max_value=3)
        ),
        max_size=60,
    ),
    first_epoch=st.sampled_from((0, EPOCH_EXHAUSTED - 3)),
    data=st.data(),
)
def test_a_replay_of_a_cleaned_log_is_what_the_coordinator_knows(
    steps: list[tuple[str, str, int, int]], first_epoch: int, data: st.DataObject
) -> None:
    coordinator = Coordinator(first_epoch)
    for step in steps:
        coordinator.step(*step)
    taken = data.draw(st.sets(st.integers(min_value=0, max_value=max(len(coordinator.log) - 1, 0))))
    live = {
        name: replace(transaction.standing, last_epoch=NO_EPOCH)
        for name, transaction in coordinator.live.items()
        if transaction.standing.producer_epoch != NO_EPOCH
    }
    assert replay(coordinator.log) == live
    assert replay(cleaned(coordinator.log, taken)) == live
    for standing in live.values():
        assert standing.state is not TransactionState.DEAD
