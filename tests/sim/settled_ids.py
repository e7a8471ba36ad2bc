"""What a coordinator of transactions knows as settled is committed, and what it knows at all is in its log's words.

After each step of a node the records that it has appended to the logs of `__transaction_state` which it leads are read
from the bytes of its disk, and compared with what the coordinator knows then:

| invariant | meaning |
|---|---|
| ReplaysAgree | the last record of an id says where the coordinator is moving it, or where it stands |
| SettledIsCommitted | no record above the high watermark says where an id stands, or that it is gone |
| OneMoveAtATime | no id has two records above the high watermark |
| RecordsAreOfTheLevel | a record has the form that the level of `transaction.version` in the coordinator's image has |
| WaitsForSomething | requests wait for the end of a transaction only as long as one is decided and not complete |
| marker-of-a-former-coordinator | a marker carries an epoch before the one in which its transaction was decided |

`replays` looks at whole logs now and then, also once they are cleaned. Here each record is seen once, but for what
a disk has damaged.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final, NamedTuple

from kavka_broker.core.metadata.image.features import TRANSACTION_VERSION
from kavka_broker.core.transaction.records import TAGGED_FROM
from kavka_broker.core.transaction.records import standing_of as standing_in
from kavka_broker.core.transaction.state import BUMPS_FROM, Standing
from kavka_broker.protocol.coordinator_records import Coordinator, unframe
from kavka_broker.protocol.messages.transaction.transaction_log_key import TransactionLogKey
from kavka_broker.protocol.messages.transaction.transaction_log_value import TransactionLogValue
from kavka_broker.protocol.records.record import read_records
from tests.sim.appended_batches import Appended
from tests.sim.node import Node
from tests.sim.replays import bare, end_of, is_comparable, standing_of, written

Simulation = Any


TAGGED_FORM: Final = 1


class Said(NamedTuple):
    """A record: what it says of an id, None for a tombstone; `form` is the version in which its value is written."""

    offset: int
    transactional_id: str
    standing: Standing | None
    form: int = TAGGED_FORM

    def agrees(self, live: Standing | None) -> bool:
        """Whether the record says what is known of its id, as far as its form has room for it."""
        return self.standing == (bare(live) if live is not None and self.form < TAGGED_FORM else live)


@dataclass(slots=True)
class Known:
    """A shard, up to where its log has been read, and its records above the high watermark."""

    shard: Any
    appended: Appended
    uncommitted: list[Said] = field(default_factory=list)


class SettledIds:
    """Looks at the coordinators of a node after each of its steps. `records` counts those that it has read."""

    def __init__(self, simulation: Simulation) -> None:
        self.records = 0
        self._decided: dict[tuple[int, int], int] = {}  # the first epoch of a coordinator, by producer id and epoch
        self._simulation = simulation
        self._known: dict[tuple[int, int], Known] = {}  # by node and partition

    def after_step(self, node: Node) -> None:
        """Read what has been appended, and compare."""
        if not node.is_serving:
            return
        for shard in node.broker.transactions.shards():
            if not is_comparable(shard):
                continue
            place = node.node_id, shard.partition.index
            known = self._known.get(place)
            if known is None or known.shard is not shard:
                # What it has loaded may be above the high watermark: a leader is not asked to wait for its followers.
                known = self._known[place] = Known(shard, Appended(end_of(shard)))
            level = node.broker.metadata.features.level(TRANSACTION_VERSION)
            form = TAGGED_FORM if level >= TAGGED_FROM else 0
            for problem in chain(self._problems(known, form), waits_in_vain(shard)):
                self._simulation.fail(f"{problem} ({node.host}, {shard.partition})")

    def _problems(self, known: Known, form: int) -> Iterator[str]:
        """`form` is that of the records that the coordinator writes now."""
        shard = known.shard
        transactions, high_watermark = shard.transactions, shard.partition.high_watermark
        if end_of(shard) != known.appended.end_offset:
            said = list(appended(known))
            self.records += len(said)
            known.uncommitted += said
            yield from self._of_new_records(shard, said, form)
        if not known.uncommitted:
            return
        known.uncommitted = [record for record in known.uncommitted if record.offset >= high_watermark]
        moving = set[str]()
        for record in known.uncommitted:
            name, transaction = record.transactional_id, transactions.get(record.transactional_id)
            if name in moving:
                yield f"OneMoveAtATime: {name} has two records above {high_watermark}, the second at {record.offset}"
            moving.add(name)
            settled = None if transaction is None else written(transaction.standing)
            if record.agrees(settled):
                yield f"SettledIsCommitted: {name} is {settled}, as at {record.offset} above {high_watermark}"

    def _of_new_records(self, shard: Any, said: list[Said], form: int) -> Iterator[str]:
        for record in said:
            if record.standing is not None:
                self._note_decided(shard, record.standing)
                if record.form != form:
                    yield f"RecordsAreOfTheLevel: that at {record.offset} has the form {record.form}, not {form}"
        for name, record in {record.transactional_id: record for record in said}.items():
            transaction = shard.transactions.get(name)
            live = None if transaction is None else standing_of(transaction)
            if not record.agrees(live):
                yield f"ReplaysAgree: {name}: {live}, and the record at {record.offset} says {record.standing}"

    def _note_decided(self, shard: Any, standing: Standing) -> None:
        if standing.state.is_prepared and standing.version >= BUMPS_FROM:  # each decision has an epoch of its own
            self._decided.setdefault((standing.producer_id, standing.producer_epoch), shard.partition.leader_epoch)

    def marker(self, where: str, producer: tuple[int, int], coordinator_epoch: int) -> str:
        """What is wrong with a marker of this producer id and epoch; empty for nothing."""
        decided = self._decided.get(producer, coordinator_epoch)
        if decided <= coordinator_epoch:
            return ""
        return f"marker-of-a-former-coordinator: {where} has epoch {coordinator_epoch}; {producer} decided in {decided}"


def appended(known: Known) -> Iterator[Said]:
    """Records behind those that have been read, by the bytes of the disk."""
    for header, batch in known.appended.read(known.shard.partition.log):
        if not header.is_control:
            yield from (said for record in read_records(batch) if (said := said_by(record)) is not None)


def said_by(record: Any) -> Said | None:
    """What a record of `__transaction_state` says; None for one of another kind."""
    key, value = unframe(record.key, record.value, Coordinator.TRANSACTION)
    if not isinstance(key, TransactionLogKey):
        return None
    standing = written(standing_in(value)) if isinstance(value, TransactionLogValue) else None
    form = TAGGED_FORM if record.value is None else int.from_bytes(record.value[:2])
    return Said(record.offset, key.transactional_id, standing, form)


def waits_in_vain(shard: Any) -> Iterator[str]:
    """Requests that wait for the end of a transaction that has come already."""
    for name in shard.completions:
        transaction = shard.transactions.get(name)
        if transaction is None or not transaction.standing.state.is_prepared:
            yield f"WaitsForSomething: requests wait for {name}, which has no decided transaction"
