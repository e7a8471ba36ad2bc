"""Any sequence of append, roll, flush, truncate, kill and crash, then recovery: the log equals a list.

What was acknowledged and synced is there; what is there is a prefix of what was written; the indexes, the leader epochs
and the producers' state agree with the batches.
"""

from random import Random

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule

from kavka_broker.core.config.topic import LogConfig
from kavka_broker.protocol.records.batch import read_header, split_batches
from kavka_broker.protocol.records.record import build_batch, read_records
from tests.property.storage.machines import LogOnADisk, Step, play_by_chance

PRODUCER_ID = 7


class LogMachine(LogOnADisk):
    """A log beside a list."""

    CONFIG = LogConfig(internal_segment_bytes=1500, index_interval_bytes=200, segment_index_bytes=120)

    def __init__(self) -> None:
        super().__init__()
        self.model: list[bytes] = []  # the value of the record at each offset
        self.epochs: list[int] = []  # the leader epoch of each
        self.epoch = 0
        self.synced = 0
        self.sequence = 0
        self.count = 0

    @rule(count=st.integers(1, 4), size=st.integers(0, 300))
    def append(self, count: int, size: int) -> None:
        values = [b"%d/" % (self.count + index) + b"x" * size for index in range(count)]
        self.count += count
        batch = build_batch(
            [(None, value) for value in values],
            timestamp_ms=1000 + self.count,
            producer_id=PRODUCER_ID,
            producer_epoch=0,
            base_sequence=self.sequence,
        )
        appended = self.log.append_as_leader(memoryview(batch), self.epoch, 0)
        assert appended.base_offset == len(self.model)
        assert not appended.duplicate
        self.sequence += count
        self.model += values
        self.epochs += [self.epoch] * count

    @rule()
    def elect(self) -> None:
        self.epoch += 1
        self.log.epochs.assign(self.epoch, self.log.log_end_offset)

    @rule()
    def flush(self) -> None:
        self.log.flush()
        self.synced = len(self.model)

    @rule()
    def remove_deleted(self) -> None:
        self.log.segments.discarded.remove()

    @rule(share=st.floats(0, 1))
    def truncate(self, share: float) -> None:
        self.log.truncate_to(int(len(self.model) * share))
        self.shorten()
        self.synced = min(self.synced, len(self.model))

    @rule(share=st.floats(0, 1), steps=st.integers(0, 3), seed=st.none() | st.integers(0, 2**32))
    def cut_in_steps(self, share: float, steps: int, seed: int | None) -> None:
        """As a follower does, which may come to lead, or lose its power, between any two."""
        whole = [*self.model], [*self.epochs], self.sequence
        self.log.truncation.plan_cut(int(len(self.model) * share))
        if steps:
            self.flush()  # of another thread, which makes durable what is about to go
            self.log.durability.sync_records()
        if steps > 1 and self.log.durability.may_be_cut:
            self.log.truncation.carry_out()
            self.forget_the_end()
            self.synced = min(self.synced, len(self.model))
        if steps > 2:
            self.log.durability.sync_records()
            assert not self.log.durability.is_being_cut
        if seed is None:
            self.log.durability.give_up_cut()
            self.log.durability.sync_records()
            self.shorten()
        else:
            if steps < 3:
                self.model, self.epochs, self.sequence = whole  # it is unknown which of both the disk has
            self.crash(seed)

    @rule()
    def reopen(self) -> None:
        self.log.close()
        self.synced = len(self.model)
        self.disk.kill()
        self.log = self.open(recover=False)
        assert self.log.log_end_offset == len(self.model)

    @rule()
    def kill(self) -> None:
        self.disk.kill()
        self.log = self.open(recover=True)
        assert self.log.log_end_offset == len(self.model)

    @rule(seed=st.integers(0, 2**32))
    def crash(self, seed: int) -> None:
        self.disk.crash(Random(seed))
        self.log = self.open(recover=True)
        assert self.synced <= self.log.log_end_offset <= len(self.model)
        self.shorten()

    def shorten(self) -> None:
        """Take the log's end over; the producer goes on where the log knows it to be."""
        self.forget_the_end()
        producer = self.log.producers.get(PRODUCER_ID)
        self.sequence = producer.last_sequence + 1 if producer else 0
        assert self.sequence == len(self.model)

    def forget_the_end(self) -> None:
        end = self.log.log_end_offset
        del self.model[end:]
        del self.epochs[end:]

    @invariant()
    def equals_the_list(self) -> None:
        assert self.log.log_end_offset == len(self.model)
        offset, found = 0, []
        while offset < self.log.log_end_offset:
            chunk = self.log.read(offset, 700)
            assert chunk.size_bytes, f"nothing at {offset}"
            for part in chunk.parts:
                for header, batch in split_batches(part):
                    records = read_records(batch)
                    assert [record.offset for record in records] == list(range(offset, header.next_offset))
                    assert header.leader_epoch == self.epochs[offset] == self.log.epochs.epoch_at(offset)
                    found += [record.value for record in records]
                    offset = header.next_offset
        assert found == self.model

    @invariant()
    def indexes_agree(self) -> None:
        for segment in self.log.segments:
            for relative, position in segment.offsets:
                header = read_header(segment.file.read(position, 61))
                assert header.last_offset == segment.base_offset + relative
            entries = list(segment.times)
            assert entries == sorted(entries)
            timestamps = {header.last_offset: header.max_timestamp for _, header in segment.batches()}
            for timestamp_ms, relative in entries:
                assert timestamps[segment.base_offset + relative] == timestamp_ms
            assert segment.largest.timestamp_ms == max(timestamps.values(), default=-1)

    @invariant()
    def recovery_point_was_synced(self) -> None:
        assert self.log.recovery_point <= self.synced
        assert self.checkpoint <= self.synced

    def check(self) -> None:
        self.equals_the_list()
        self.indexes_agree()
        self.recovery_point_was_synced()


STEPS = [*["append"] * 5, *["crash"] * 3, "truncate", *["cut_in_steps"] * 2, "flush", "roll", "elect", "kill", "reopen"]
STEPS += ["remove_deleted", "checkpoint_recovery_point"]


def draw(random: Random, _: LogMachine) -> Step:
    step = random.choice(STEPS)
    drawn: dict[str, dict[str, object]] = {
        "append": {"count": random.randint(1, 4), "size": random.randint(0, 300)},
        "crash": {"seed": random.getrandbits(32)},
        "truncate": {"share": random.random()},
        "cut_in_steps": {
            "share": random.random(),
            "steps": random.randint(0, 3),
            "seed": random.choice((None, random.getrandbits(32))),
        },
    }
    return step, drawn.get(step, {})


@pytest.mark.parametrize("block", range(10))
def test_a_log_survives_many_crashes(block: int) -> None:
    play_by_chance(block, LogMachine, range(3, 26), draw)


LogMachine.TestCase.settings = settings(max_examples=80, stateful_step_count=25, deadline=None)
TestLogSurvives = LogMachine.TestCase
