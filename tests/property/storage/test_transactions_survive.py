"""Any interleaving of transactions, markers, rolls, truncation, restarts, kills and losses of power: what the log says
of transactions is what somebody finds out who reads all of its batches.

That is the last stable offset, the aborted transactions of any range, and the entries of every `.txnindex`, also where
one of these files was damaged or lost meanwhile.
"""

from random import Random
from typing import NamedTuple

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from kavka_broker.core.config.topic import LogConfig
from kavka_broker.protocol.records.batch import split_batches
from kavka_broker.protocol.records.control import ControlType, build_marker, read_marker
from kavka_broker.protocol.records.record import build_batch
from kavka_broker.storage.log import Log, Origin
from kavka_broker.storage.recovery import open_log
from kavka_broker.storage.transaction_index import ENTRY, AbortedTransaction
from kavka_broker.storage.transaction_index_proof import prove
from tests.property.storage.machines import LogOnADisk, Step, play_by_chance

FOLLOWER = "/data/f-0"
PRODUCERS = st.integers(1, 4)
NONE = -1
FIELDS = (0, 2, 10, 18, 26)  # where those of an entry begin


class Truth(NamedTuple):
    """What reading all batches tells."""

    opened: dict[int, int]  # first offset by producer
    ended: list[tuple[int, int]]  # first offset and marker of every transaction
    aborted: list[AbortedTransaction]


def read_all(log: Log) -> Truth:
    """The state of all transactions, worked out from the batches alone."""
    truth = Truth({}, [], [])
    for segment in log.segments:
        for header, batch in split_batches(segment.file.read(0, segment.size_bytes)):
            producer_id = header.producer_id
            if not header.is_control:
                if header.is_transactional and header.last_offset >= log.log_start_offset:
                    truth.opened.setdefault(producer_id, header.base_offset)
                continue
            first = truth.opened.pop(producer_id, NONE)
            if first != NONE:
                offset = header.base_offset
                truth.ended.append((first, offset))
                marker = read_marker(batch)
                assert marker is not None
                if marker.kind is ControlType.ABORT:
                    stable = min(truth.opened.values(), default=offset + 1)
                    truth.aborted.append(AbortedTransaction(producer_id, first, offset, stable))
    return truth


class TransactionMachine(LogOnADisk):
    """A leader's log with transactions, and a follower's copy of it."""

    CONFIG = LogConfig(internal_segment_bytes=900, index_interval_bytes=200, segment_index_bytes=120)

    def __init__(self) -> None:
        super().__init__()
        self.high_watermark = 0
        self.sequences: dict[int, int] = {}
        self.is_mended = False  # an index was made again by a reader, and not synced yet,
        self.was_mended = False  # also not by a process that was killed
        self.is_reloaded = False  # markers above the high watermark may be forgotten with a restart

    def reloaded(self) -> None:
        self.is_reloaded = True
        self.high_watermark = min(self.high_watermark, self.log.log_end_offset)
        self.log.producers.transactions.replicated(self.high_watermark)
        self.sequences = {key: producer.last_sequence + 1 for key, producer in self.log.producers}

    # --- what is written ----------------------------------------------------------------------------------------

    @rule(producer=PRODUCERS, count=st.integers(1, 4), size=st.integers(0, 200))
    def write_in_transaction(self, producer: int, count: int, size: int) -> None:
        self.append(producer, count, size, transactional=True)

    @rule(count=st.integers(1, 3))
    def write_plainly(self, count: int) -> None:
        self.append(9, count, 50, transactional=False)

    def append(self, producer: int, count: int, size: int, *, transactional: bool) -> None:
        sequence = self.sequences.get(producer, 0)
        batch = build_batch(
            [(None, b"x" * size)] * count,
            timestamp_ms=1000,
            producer_id=producer,
            producer_epoch=0,
            base_sequence=sequence,
            transactional=transactional,
        )
        assert not self.log.append_as_leader(memoryview(batch), 0, 0).duplicate
        self.sequences[producer] = sequence + count

    @rule(producer=PRODUCERS, is_aborted=st.booleans())
    def end(self, producer: int, is_aborted: bool) -> None:
        kind = ControlType.ABORT if is_aborted else ControlType.COMMIT
        marker = build_marker(kind, producer_id=producer, producer_epoch=0, coordinator_epoch=1, timestamp_ms=1000)
        self.log.append_as_leader(memoryview(marker), 0, 0, Origin.COORDINATOR)

    @rule(share=st.floats(0, 1))
    def replicate(self, share: float) -> None:
        self.high_watermark += int((self.log.log_end_offset - self.high_watermark) * share)
        self.log.producers.transactions.replicated(self.high_watermark)

    # --- upkeep and accidents -----------------------------------------------------------------------------------

    @rule()
    def flush(self) -> None:
        self.log.flush()
        self.is_mended = False

    @rule(share=st.floats(0, 1))
    def truncate(self, share: float) -> None:
        if self.log.truncate_to(int(self.log.log_end_offset * share)):
            self.reloaded()

    @rule()
    def reopen(self) -> None:
        self.log.close()
        self.is_mended = False
        self.disk.kill()
        self.log = self.open(recover=False)
        self.reloaded()

    @rule(seed=st.integers(0, 2**32))
    def close_and_lose_power(self, seed: int) -> None:
        """What was closed in good order was synced, names and all."""
        self.log.close()
        self.is_mended = False
        self.disk.crash(Random(seed))
        self.log = self.open(recover=False)
        self.reloaded()
        self.look_again()

    @rule()
    def kill(self) -> None:
        self.disk.kill()
        self.log = self.open(recover=True)
        self.reloaded()
        self.was_mended |= self.is_mended

    @rule(seed=st.integers(0, 2**32))
    def crash(self, seed: int) -> None:
        self.disk.crash(Random(seed))
        self.log = self.open(recover=True)
        self.reloaded()
        self.was_mended |= self.is_mended
        self.look_again()

    @precondition(lambda self: self.log.segments.has_aborted)
    @rule(which=st.integers(0, 9), field=st.sampled_from(FIELDS))
    def damage_an_index(self, which: int, field: int) -> None:
        """The version, an id or an offset becomes one that cannot be."""
        self.log.close()
        self.is_mended = False
        self.disk.kill()
        paths = [segment.aborted.path for segment in self.log.segments if segment.aborted.last_offset >= 0]
        self.disk.flip_bit(paths[which % len(paths)], field, 7)
        self.log = self.open(recover=False)
        self.reloaded()

    @precondition(lambda self: self.log.segments.has_aborted)
    @rule(which=st.integers(0, 9))
    def lose_an_index(self, which: int) -> None:
        """A kill, and the file is gone; it is built again where the log is recovered."""
        self.disk.kill()
        self.checkpoint = 0
        paths = [segment.aborted.path for segment in self.log.segments if segment.aborted.last_offset >= 0]
        path = paths[which % len(paths)]
        if self.disk.exists(path):
            self.disk.remove(path)
        self.log = self.open(recover=True)
        self.reloaded()
        self.was_mended |= self.is_mended

    @precondition(lambda self: self.log.segments.has_aborted)
    @rule(which=st.integers(0, 9), share=st.floats(0, 1))
    def lose_an_index_unnoticed(self, which: int, share: float) -> None:
        """After a clean stop some or all entries are gone. Whoever reads everything finds out."""
        self.log.close()
        self.is_mended = False
        self.disk.kill()
        indexes = [segment.aborted for segment in self.log.segments if segment.aborted.last_offset >= 0]
        index = indexes[which % len(indexes)]
        kept = int(len(index) * share)
        if kept:
            self.disk.open(index.path).truncate(kept * ENTRY.size)
        else:
            self.disk.remove(index.path)
        self.log = self.open(recover=False)
        self.reloaded()
        self.read_everything()
        self.is_mended = True

    def look_again(self) -> None:
        """Power was lost: an index that a reader has made again may be gone, and is found missing, once more."""
        if self.was_mended:
            self.read_everything()

    def read_everything(self) -> None:
        offset = 0
        while offset < self.log.log_end_offset:
            offset = self.log.read(offset, 700).end_offset
            while self.log.segments.has_doubted:
                assert not list(prove(self.log))

    # --- what must hold -----------------------------------------------------------------------------------------

    @invariant()
    def the_stable_offset_is_right(self) -> None:
        truth = read_all(self.log)
        unstable = list(truth.opened.values())
        unsettled = unstable + [first for first, marker in truth.ended if marker >= self.high_watermark]
        found = self.log.producers.transactions.first_unstable_offset
        if found == NONE or (self.is_reloaded and found not in unsettled):
            assert not unstable
            assert self.is_reloaded or not unsettled
        elif self.is_reloaded:
            assert min(unsettled) <= found <= min(unstable, default=found)
        else:
            assert found == min(unsettled)

    @invariant()
    def the_indexes_are_right(self) -> None:
        truth = read_all(self.log)
        found = [(segment, entry) for segment in self.log.segments for entry in segment.aborted]
        assert [entry for _, entry in found] == truth.aborted
        assert self.log.segments.has_aborted == bool(found)
        for segment, entry in found:
            assert self.log.segments.from_offset(entry.last_offset)[0] is segment

    @invariant()
    def readers_are_told(self) -> None:
        truth, end = read_all(self.log), self.log.log_end_offset
        for offset in range(0, end, max(1, end // 7)):
            for end_offset in range(offset + 1, end + 1, max(1, end // 5)):
                wanted = [one for one in truth.aborted if one.last_offset >= offset and one.first_offset < end_offset]
                assert self.log.reader.aborted_between(offset, end_offset) == wanted

    def check(self) -> None:
        self.the_stable_offset_is_right()
        self.the_indexes_are_right()
        self.readers_are_told()

    def teardown(self) -> None:
        """A follower that takes it all comes to the same, and so does one that has to read it again."""
        follower = open_log(self.disk, FOLLOWER, self.CONFIG, now_ms=0)
        for segment in self.log.segments:
            if segment.size_bytes:
                follower.append_as_follower(segment.file.read(0, segment.size_bytes))
        for _ in range(2):
            mine = [entry for segment in follower.segments for entry in segment.aborted]
            assert mine == [entry for segment in self.log.segments for entry in segment.aborted]
            transactions = follower.producers.transactions
            assert transactions.first_open_offset == self.log.producers.transactions.first_open_offset
            follower = open_log(self.disk, FOLLOWER, self.CONFIG, now_ms=0)


STEPS = [*["write_in_transaction"] * 6, *["end"] * 4, *["replicate"] * 2, "write_plainly", "roll", "flush"]
STEPS += [
    "checkpoint_recovery_point",
    "truncate",
    "reopen",
    "kill",
    "crash",
    "close_and_lose_power",
    "damage_an_index",
    "lose_an_index",
    "lose_an_index_unnoticed",
]


def draw(random: Random, machine: TransactionMachine) -> Step:
    step = random.choice([one for one in STEPS if machine.log.segments.has_aborted or "index" not in one])
    drawn: dict[str, dict[str, object]] = {
        "write_in_transaction": {
            "producer": random.randint(1, 4),
            "count": random.randint(1, 4),
            "size": random.randint(0, 200),
        },
        "end": {"producer": random.randint(1, 4), "is_aborted": random.random() < 0.6},
        "replicate": {"share": random.random()},
        "write_plainly": {"count": random.randint(1, 3)},
        "truncate": {"share": random.random()},
        "crash": {"seed": random.getrandbits(32)},
        "close_and_lose_power": {"seed": random.getrandbits(32)},
        "damage_an_index": {"which": random.randint(0, 9), "field": random.choice(FIELDS)},
        "lose_an_index": {"which": random.randint(0, 9)},
        "lose_an_index_unnoticed": {"which": random.randint(0, 9), "share": random.random()},
    }
    return step, drawn.get(step, {})


@pytest.mark.parametrize("block", range(5))
def test_many_transactions_survive_crashes(block: int) -> None:
    play_by_chance(block, TransactionMachine, range(5, 41), draw)


TransactionMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestTransactionsSurvive = TransactionMachine.TestCase
