"""The log cleaner: cleans the compacted logs of this broker, the dirtiest first.

One task chooses, so that no log is cleaned twice at a time; up to `log.cleaner.threads` logs are cleaned beside each
other, and share the memory and the rate that the configs give. What takes the place of what is decided on the loop; a
thread reads and writes, a slice at a time, so that requests are served in between whatever the interpreter shares.
`log.cleaner.io.max.bytes.per.second` holds the slices back. All configs count as they are now: what changes is in
force within a second, memory with the next log.

A log of which something cannot be read is uncleanable: nothing of it is touched, it is named in the log and counted,
and left alone until another takes its place. A full disk is tried again, a disk that fails takes its directory offline.
"""

import asyncio
from collections.abc import Callable, Generator
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from kavka_broker.core.cleaning.io_throttle import IoThrottle
from kavka_broker.core.cleaning.selection import DirtyRange, LogView, SegmentView, choose, dirty_range
from kavka_broker.core.config.broker import BrokerConfig
from kavka_broker.interfaces import Clock
from kavka_broker.logs import get
from kavka_broker.loop.slices import COST_PER_YIELD, Cost
from kavka_broker.protocol.errors import BrokerError
from kavka_broker.storage.cleaning.run import (
    BYTES_PER_SLICE,
    Bounds,
    Cleaning,
    Outdated,
    Replacement,
    Slice,
    Uncleanable,
    view,
)
from kavka_broker.storage.cleaning.segment_swap import put_in_place
from kavka_broker.storage.disk_errors import is_passing
from kavka_broker.storage.file_names import PartitionName
from kavka_broker.storage.log import Log
from kavka_broker.storage.log_manager import LogManager

log = get("replica")

#: Logs, and segments of them, looked at in one turn of the loop; and logs that are only passed over.
COMPACTED_PER_TURN: Final = 50
OTHERS_PER_TURN: Final = 2_500
SEGMENTS_PER_TURN: Final = 500
#: A shorter pause is added to the next, and not waited for.
BREATH_MS_MIN: Final = 10
#: The longest wait without a look at the configs.
WAIT_MS_MAX: Final = 1_000
PROGRESS_MS: Final = 30_000

Work = Generator[Slice | Replacement]


@dataclass(frozen=True, slots=True)
class Cleanable:
    """A log that may be cleaned, and the part of it that may, unless it has been cut since."""

    log: Log
    truncations: int
    stable_offset: int
    dirty: DirtyRange


@dataclass(slots=True)
class CleanerFigures:
    """Figures for the metrics, of the last run or of all runs (`_total`)."""

    runs_total: int = 0
    bytes_read_total: int = 0
    bytes_written_total: int = 0
    map_utilization: float = 0.0
    recopy_ratio: float = 0.0
    clean_ms: int = 0
    overdue_ms_max: int = 0
    dirty_ratio_max: float = 0.0
    looked_ms: int = 0  # when the logs were looked at last


class LogCleaner:
    """Cleans until `stop`. `stable_offset_of` says how far a log may be cleaned; None where it must not be."""

    def __init__(
        self,
        logs: LogManager,
        clock: Clock,
        *,
        config: Callable[[], BrokerConfig],
        stable_offset_of: Callable[[Log], int | None],
        crash: Callable[[BaseException], None],
        slice_bytes: int = BYTES_PER_SLICE,
        segments_per_turn: int = SEGMENTS_PER_TURN,
    ) -> None:
        self._logs = logs
        self._slice_bytes = slice_bytes
        self._segments_per_turn = segments_per_turn
        self._clock = clock
        self._config = config
        self._stable_offset_of = stable_offset_of
        self._crash = crash
        self._task: asyncio.Task[None] | None = None
        self._stopping = asyncio.Event()
        self._freed = asyncio.Event()  # a cleaning is done, and another may begin
        self._workers: dict[PartitionName, asyncio.Task[None]] = {}
        self._uncleanable: dict[PartitionName, Log] = {}
        self._throttle = IoThrottle(clock.monotonic_ms())
        self.figures = CleanerFigures(looked_ms=clock.now_ms())
        self.running: dict[PartitionName, Cleaning] = {}

    def start(self) -> None:
        if self._config()["log.cleaner.enable"]:
            self._task = asyncio.create_task(self._run(), name="log cleaner")

    async def stop(self) -> None:
        """Stop after the slices at hand; the files they have written are not part of any log yet."""
        self._stopping.set()
        self._freed.set()
        if self._task is not None:
            await self._task
        await asyncio.gather(*self._workers.values())

    @property
    def uncleanable(self) -> list[Log]:
        """Return the logs that hold a batch that cannot be read."""
        return [uncleanable for name, uncleanable in self._uncleanable.items() if self._logs.get(*name) is uncleanable]

    @property
    def progress(self) -> float:
        """Return the progress of the cleaning that has come the least far; 0 where none runs."""
        return min((cleaning.progress for cleaning in self.running.values()), default=0.0)

    # --- which one ----------------------------------------------------------------------------------------------

    async def _run(self) -> None:
        while not self._stopping.is_set():
            self._freed.clear()
            try:
                found = await self._choose() if len(self._workers) < self._config()["log.cleaner.threads"] else None
            except AssertionError as error:
                self._crash(error)
                return
            except Exception as error:  # a bug in one run must not end all cleaning
                log.exception("cleaning.failed", error)  # noqa: TRY401
                found = None
                await _wait(self._stopping, WAIT_MS_MAX)
            if found is None:
                await self._rest(self._freed)
            else:
                name = found.log.name
                self._workers[name] = asyncio.create_task(self._work(found), name=f"log cleaner of {name}")

    async def _rest(self, until: asyncio.Event) -> None:
        """Wait for `log.cleaner.backoff.ms`, or until something has happened."""
        began_ms = self._clock.monotonic_ms()
        while not self._stopping.is_set() and not until.is_set():
            left_ms = began_ms + self._config()["log.cleaner.backoff.ms"] - self._clock.monotonic_ms()
            if left_ms <= 0:
                return
            await _wait(until, min(left_ms, WAIT_MS_MAX))

    async def _work(self, found: Cleanable) -> None:
        try:
            if not await self._clean(found):
                await self._rest(self._stopping)  # the cleaning keeps its place: a full disk gets a pause
            self._freed.set()
        except AssertionError as error:
            self._crash(error)
        except Exception as error:  # a bug in one run must not end all cleaning
            log.exception("cleaning.failed", error)  # noqa: TRY401
            await _wait(self._stopping, WAIT_MS_MAX)
        finally:
            del self._workers[found.log.name]

    async def clean_next(self) -> bool:
        """Clean the log that most needs cleaning; returns whether a log was cleaned."""
        found = await self._choose()
        return found is not None and await self._clean(found)

    async def _choose(self) -> Cleanable | None:
        found = await self._look()
        index = choose((cleanable.dirty, cleanable.log.config) for cleanable in found)
        return None if index is None else found[index]

    async def _look(self) -> list[Cleanable]:
        now_ms, found = self._clock.now_ms(), list[Cleanable]()
        kept = self.uncleanable
        self._uncleanable = {unclean.name: unclean for unclean in kept}
        cost = Cost()
        for partition_log in self._logs:
            is_compacted = partition_log.config.compacts
            cleanable = await self._cleanable(partition_log, now_ms) if is_compacted else None
            if cleanable is not None:
                found.append(cleanable)
            if cost.add(COST_PER_YIELD // (COMPACTED_PER_TURN if is_compacted else OTHERS_PER_TURN)):
                await asyncio.sleep(0)
        self.figures.looked_ms = now_ms
        self.figures.dirty_ratio_max = max((cleanable.dirty.ratio for cleanable in found), default=0.0)
        self.figures.overdue_ms_max = max((cleanable.dirty.overdue_ms for cleanable in found), default=0)
        return found

    async def _cleanable(self, partition_log: Log, now_ms: int) -> Cleanable | None:
        if (
            not partition_log.config.compacts
            or partition_log.is_failed
            or partition_log.is_closed
            or partition_log.durability.is_being_cut
        ):
            return None
        if partition_log.name in self._workers or partition_log.name in self._uncleanable:
            return None
        stable_offset = self._stable_offset_of(partition_log)
        if stable_offset is None:
            return None
        truncations, segments = partition_log.truncations, list[SegmentView]()
        for segment in list(partition_log.segments):
            segments.append(view(segment))
            if len(segments) % self._segments_per_turn == 0:
                await asyncio.sleep(0)
        dirty = dirty_range(view_of(partition_log, segments, stable_offset), now_ms)
        return Cleanable(partition_log, truncations, stable_offset, dirty) if dirty.cleanable_bytes else None

    # --- the work -----------------------------------------------------------------------------------------------

    async def _clean(self, found: Cleanable) -> bool:
        partition_log, dirty = found.log, found.dirty
        if partition_log.truncations != found.truncations:
            return False
        began_ms = self._clock.monotonic_ms()
        log.info(
            "cleaning.begun",
            log=str(partition_log.name),
            from_offset=dirty.first_dirty_offset,
            to_offset=dirty.first_uncleanable_offset,
            dirty_percent=round(100 * dirty.ratio),
        )
        cleaning = Cleaning(partition_log, dirty, found.stable_offset, self._bounds(), self._clock.now_ms())
        self.running[partition_log.name] = cleaning
        work = cleaning.work()
        try:
            await self._carry_out(cleaning, work)
        except Outdated as problem:
            log.info("cleaning.abandoned", log=str(partition_log.name), reason=str(problem))
            return False
        except Uncleanable as problem:
            self._uncleanable[partition_log.name] = partition_log
            log.error("cleaning.refused", log=str(partition_log.name), reason=str(problem))
            return False
        except BrokerError:
            return False  # its directory is offline
        except OSError as problem:
            log.error("cleaning.failed", log=str(partition_log.name), reason=str(problem))
            if not is_passing(problem):
                partition_log.state.fail()
            return False
        finally:
            del self.running[partition_log.name]
            await asyncio.to_thread(work.close)
        self._count(cleaning, began_ms)
        return True

    async def _carry_out(self, cleaning: Cleaning, work: Work) -> None:
        """Clean the log. Raises Outdated, Uncleanable, OSError, and BrokerError where a replacement failed."""
        told_ms = self._clock.monotonic_ms()
        while True:
            step = await asyncio.to_thread(_advance, cleaning, work)
            self._check(cleaning)
            match step:
                case None:
                    break
                case Replacement(old, cleaned):
                    if not put_in_place(cleaning.log, old, cleaned):
                        raise Outdated("its segments are not there any more")
                case Slice(size_bytes):
                    await self._breathe(cleaning, size_bytes)
                    told_ms = self._tell_progress(cleaning, told_ms)
        # A replacement starts on the loop, which may cut the log before the thread begins.
        cleaning.log.state.cleaned_offset = cleaning.figures.end_offset
        await asyncio.to_thread(self._logs.note_cleaned, cleaning.log)

    def _check(self, cleaning: Cleaning) -> None:
        """Check that the log was not cut. Raises Outdated."""
        if self._stopping.is_set():
            raise Outdated("the broker stops")
        if cleaning.is_outdated or self._logs.get(*cleaning.log.name) is not cleaning.log:
            raise Outdated("the log has changed")
        if self._stable_offset_of(cleaning.log) is None:
            raise Outdated("the log is on its way elsewhere")

    async def _breathe(self, cleaning: Cleaning, size_bytes: int) -> None:
        """Wait as long as the rate asks for; a pause that is too short is added to the next. Raises Outdated."""
        self._throttle.note(size_bytes, self._rate(), self._clock.monotonic_ms())
        while (wait_ms := self._throttle.wait_ms(self._rate(), self._clock.monotonic_ms())) >= BREATH_MS_MIN:
            await _wait(self._stopping, min(wait_ms, WAIT_MS_MAX))
            self._check(cleaning)

    def _rate(self) -> float:
        return max(1.0, float(self._config()["log.cleaner.io.max.bytes.per.second"]))

    def _bounds(self) -> Bounds:
        config = self._config()
        threads = max(1, config["log.cleaner.threads"])
        return Bounds(
            config["log.cleaner.dedupe.buffer.size"] // threads,
            config["log.cleaner.io.buffer.load.factor"],
            config["log.cleaner.io.buffer.size"] // threads // 2,
            self._slice_bytes,
        )

    def _tell_progress(self, cleaning: Cleaning, told_ms: float) -> float:
        """Log the cleaning's progress now and then; returns when it was logged last."""
        now_ms = self._clock.monotonic_ms()
        if now_ms - told_ms < PROGRESS_MS:
            return told_ms
        log.info("cleaning.progressed", log=str(cleaning.log.name), percent=round(100 * cleaning.progress))
        return now_ms

    def _count(self, cleaning: Cleaning, began_ms: float) -> None:
        done, figures = cleaning.figures, self.figures
        figures.runs_total += 1
        figures.bytes_read_total += done.bytes_read
        figures.bytes_written_total += done.bytes_written
        figures.map_utilization = done.map_utilization
        figures.recopy_ratio = done.bytes_written / max(1, done.bytes_cleaned)
        figures.clean_ms = round(self._clock.monotonic_ms() - began_ms)
        log.info(
            "cleaning.done",
            log=str(cleaning.log.name),
            to_offset=done.end_offset,
            bytes_before=done.bytes_cleaned,
            bytes_after=done.bytes_written,
            records_before=done.records_read,
            records_after=done.records_kept,
            map_percent=round(100 * done.map_utilization),
            took_ms=figures.clean_ms,
        )


async def _wait(event: asyncio.Event, wait_ms: float) -> None:
    """Wait for the event, at most `wait_ms`."""
    with suppress(TimeoutError):
        async with asyncio.timeout(wait_ms / 1000):
            await event.wait()


def _advance(cleaning: Cleaning, work: Work) -> Slice | Replacement | None:
    """Do the next slice, in a thread; None at the end. Raises Outdated, and what the work raises."""
    try:
        return next(work, None)
    except (Uncleanable, OSError) as problem:
        if cleaning.is_outdated:
            raise Outdated(str(problem)) from problem
        raise


def view_of(partition_log: Log, segments: list[SegmentView], stable_offset: int) -> LogView:
    """Return what the choice needs of a log; its segments were looked at a little earlier."""
    return LogView(
        config=partition_log.config,
        segments=segments,
        log_start_offset=partition_log.log_start_offset,
        log_end_offset=partition_log.log_end_offset,
        cleaned_offset=partition_log.state.cleaned_offset,
        stable_offset=stable_offset,
        synced_offset=partition_log.recovery_point,
    )
