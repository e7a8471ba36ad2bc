"""Topics of one name come and go on disks that fail, fill up and lose power.

No log ever shows a record of another topic, and none loses what was synced.
"""

import errno
from collections import Counter
from random import Random

import pytest

from kavka_broker.core.config.topic import LogConfig
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.records.batch import split_batches
from kavka_broker.protocol.records.record import build_batch, read_records
from kavka_broker.protocol.uuids import ZERO
from kavka_broker.storage.file_names import PartitionName
from kavka_broker.storage.log import Log
from kavka_broker.storage.log_directory import MetaProperties, UnusableDirectory, write_meta_properties
from kavka_broker.storage.log_manager import LogManager
from tests.support.sim_disk import DiskError, Operation, SimDisk

PATHS = ("/a", "/b")
CONFIG = LogConfig(internal_segment_bytes=600, index_interval_bytes=100)
DAY_MS = 24 * 3600 * 1000
OPERATIONS: tuple[Operation, ...] = (
    *("open", "read", "append", "write", "truncate", "sync", "names", "make_directory", "rename", "remove", "lock"),
)
NUMBERS = (errno.ENOSPC, errno.ENOSPC, errno.EIO)
SEEDS_A_BLOCK = 60
STEPS = (
    *("create", "create", "append", "append", "append", "flush", "flush_due", "delete", "delete_and_create"),
    *("free", "free", "secure", "checkpoint", "fail", "fill", "heal", "kill", "crash", "stop"),
)


class World:
    """One partition's name, the topics that had it, and what was written and synced of the present one."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)
        self.disk = SimDisk(now_ms=1)
        for path in PATHS:
            self.disk.make_directory(path)
            write_meta_properties(self.disk, path, MetaProperties("cluster", 1, path.encode().ljust(16)))
        self.now_ms = 1
        self.count = 0
        self.topic_id = ZERO  # none has the name
        self.home = ZERO  # the directory of its log
        self.written: list[bytes] = []
        self.synced = 0
        self.is_torn = False
        self.reached: Counter[str] = Counter()
        self.begin_topic()
        self.manager = self.start()

    def begin_topic(self) -> None:
        self.topic_id, self.home = self.chance.randbytes(16), ZERO
        self.written, self.synced, self.is_torn = [], 0, False

    def start(self) -> LogManager:
        """As often as the disk lets no process start, something is repaired."""
        while True:
            try:
                manager = LogManager.open(
                    self.disk, PATHS, node_id=1, random_bytes=self.chance.randbytes, threads_max=1
                )
                manager.load(lambda topic: CONFIG, self.now_ms, known_id=lambda name: self.topic_id)
            except UnusableDirectory:
                self.reached["no start"] += 1
                self.heal()
                self.disk.kill()
            else:
                return manager

    # --- steps ------------------------------------------------------------------------------------------------------

    def create(self) -> Log | None:
        """What a broker does that hosts the present topic; a replica whose directory is away stays offline."""
        online = [one.directory_id for one in self.manager.online]
        if self.topic_id == ZERO or (self.home != ZERO and self.home not in online):
            return None
        try:
            log = self.manager.create("t", 0, self.topic_id, CONFIG, self.now_ms, self.home)
        except BrokerError as error:
            self.reached[error.code.name] += 1
            return None
        home = self.manager.directory_of("t", 0)
        assert home is not None
        self.home = home.directory_id
        self.take_over(log)
        return log

    def append(self) -> None:
        log = self.create()
        if log is None:
            return
        value = self.topic_id + b"%d" % self.count + bytes(self.chance.randint(0, 200))
        self.count += 1
        try:
            log.append_as_leader(memoryview(build_batch([(None, value)], timestamp_ms=1)), 0, self.now_ms)
        except BrokerError:
            self.reached["not appended"] += 1
        else:
            self.written.append(value)

    def flush(self) -> None:
        log = self.create()
        if log is None:
            return
        try:
            log.flush()
        except BrokerError:
            return
        self.synced = log.log_end_offset

    def flush_due(self) -> None:
        self.manager.flush_due(self.now_ms)

    def delete(self) -> None:
        if self.manager.get("t", 0) is not None and self.topic_id != ZERO:
            self.manager.delete("t", 0)
        self.topic_id, self.home, self.written, self.synced, self.is_torn = ZERO, ZERO, [], 0, False

    def delete_and_create(self) -> None:
        if self.chance.random() < 0.7:  # otherwise the broker was away, and finds the next topic at once
            self.delete()
        self.begin_topic()
        self.create()

    def free(self) -> None:
        self.now_ms += self.chance.choice((1, 60_000, DAY_MS))
        self.manager.remove_deleted(self.now_ms)

    def secure(self) -> None:
        self.manager.secure()

    def checkpoint(self) -> None:
        self.manager.write_checkpoints(lambda one: one.log_end_offset)

    def fail(self) -> None:
        chosen = frozenset(self.chance.sample(OPERATIONS, self.chance.randint(1, 3)))
        number, times = self.chance.choice(NUMBERS), self.chance.choice((1, 2, None))
        under = self.chance.choice((*PATHS, *PATHS, *(f"{path}/t-0" for path in PATHS)))
        self.disk.errors.append(DiskError(chosen, under, number, times))

    def fill(self) -> None:
        self.disk.space_bytes = self.chance.choice((0, 40, 400))

    def heal(self) -> None:
        self.disk.errors.clear()
        self.disk.space_bytes = None

    def kill(self) -> None:
        self.disk.kill()
        self.manager = self.start()

    def crash(self) -> None:
        self.disk.crash(self.chance)
        self.is_torn = True
        self.manager = self.start()

    def stop(self) -> None:
        self.manager.close(broker_epoch=1)
        self.disk.kill()
        self.manager = self.start()

    def take_over(self, log: Log) -> None:
        """After a loss of power, the end that was not synced may be gone."""
        if self.is_torn:
            assert self.synced <= log.log_end_offset <= len(self.written)
            del self.written[log.log_end_offset :]
            self.is_torn = False

    # --- what must hold ---------------------------------------------------------------------------------------------

    def check(self) -> None:
        log = self.manager.get("t", 0)
        if log is None or log.topic_id != self.topic_id or log.is_failed:
            return
        self.take_over(log)
        self.reached["served"] += bool(self.written)
        errors, self.disk.errors = self.disk.errors, []
        found = values(log)
        self.disk.errors = errors
        assert all(value.startswith(self.topic_id) for value in found), "a record of another topic"
        assert found == self.written[: len(found)], "not what was written"
        assert len(found) >= self.synced, f"{self.synced} were synced, {len(found)} are there"


def values(log: Log) -> list[bytes]:
    found, offset = [], log.log_start_offset
    while offset < log.log_end_offset:
        for part in log.read(offset, 100_000).parts:
            for header, batch in split_batches(part):
                found += [record.value or b"" for record in read_records(batch)]
                offset = header.next_offset
    return found


@pytest.mark.parametrize("block", range(10))
def test_no_record_of_another_topic_is_served_and_none_that_was_synced_is_lost(block: int) -> None:
    reached = Counter[str]()
    for seed in range(block * SEEDS_A_BLOCK, (block + 1) * SEEDS_A_BLOCK):
        world = World(seed)
        done = list[str]()
        for _ in range(world.chance.randint(5, 40)):
            done.append(world.chance.choice(STEPS))
            try:
                getattr(world, done[-1])()
                world.check()
            except (AssertionError, ValueError, OSError) as problem:
                raise AssertionError(f"seed={seed} after {done}: {problem!r}") from problem
        world.heal()
        world.kill()
        world.check()
        reached += world.reached
        assert not [name for name in world.manager.unusable_logs if name != PartitionName("t", 0)]
    refusal = ErrorCode.KAFKA_STORAGE_ERROR.name
    assert min(reached[one] for one in ("served", refusal, "not appended")) > 10
    assert not [code for code in reached if code.isupper() and code != refusal]
