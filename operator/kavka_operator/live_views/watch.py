"""Looks at a cluster again and again while its page is open, and wakes those that wait for the next look."""

import asyncio
import logging
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Final

from kavka_operator.kafka.admin import AdminError
from kavka_operator.live_views.background import aside
from kavka_operator.live_views.model import LOOKS_MAX, History
from kavka_operator.live_views.sources import Source
from kavka_operator.live_views.tables.quotas import quotas
from kavka_operator.live_views.usage_series import UsageSeries
from kavka_operator.web_page.documents import Document

LOGGER: Final = logging.getLogger(__name__)
LATE_SECONDS: Final = 10.0
"""For which an answer may be awaited before the page says so."""
LINGER_SECONDS: Final = 10.0
"""For which looks go on when the last page was left: the next one of the same browser begins with them."""


class Watch:
    """The looks at one cluster, in one event loop.

    A cluster that takes long to answer is left alone for as long as it took, so that it is asked half of the time at
    most.
    """

    def __init__(
        self,
        make_source: Callable[[], Source],
        every_seconds: float,
        linger_seconds: float = LINGER_SECONDS,
        late_seconds: float = LATE_SECONDS,
        looks_max: int = LOOKS_MAX,
    ) -> None:
        self._make_source, self._every_seconds = make_source, every_seconds
        self._linger_seconds, self._late_seconds = linger_seconds, late_seconds
        self._looks_max = looks_max
        self.history: History | None = None
        self._trouble = ""  # why the last look failed
        self._asked_at: float | None = None  # when the look began that is under way
        self.version = 0
        self._usage = UsageSeries()
        self._changed = asyncio.Condition()
        self._watchers = 0
        self._left_at = 0.0
        self._task: asyncio.Task[None] | None = None

    @property
    def trouble(self) -> str:
        """The reason for which what was seen last may not hold; empty where it does."""
        if self._trouble or self._asked_at is None:
            return self._trouble
        waited = time.monotonic() - self._asked_at
        if waited < self._late_seconds:
            return ""
        return f"no answer since {time.strftime('%H:%M:%S', time.localtime(time.time() - waited))}"

    @asynccontextmanager
    async def watched(self) -> AsyncIterator[None]:
        """Look again and again meanwhile."""
        self._watchers += 1
        if not self.is_running:
            self._task = asyncio.create_task(self._run())
        try:
            yield
        finally:
            self._watchers -= 1
            self._left_at = time.monotonic()

    async def changed_since(self, version: int, seconds: float) -> int:
        """Wait for another look than that of a version, for so long at most; returns the version that is shown."""
        try:
            async with asyncio.timeout(seconds), self._changed:
                await self._changed.wait_for(lambda: self.version != version)
        except TimeoutError:
            pass
        return self.version

    async def close(self) -> None:
        """Look no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    @property
    def is_running(self) -> bool:
        """Whether it looks."""
        return self._task is not None and not self._task.done()

    @property
    def _is_wanted(self) -> bool:
        return self._watchers > 0 or time.monotonic() - self._left_at < self._linger_seconds

    async def _run(self) -> None:
        while self._is_wanted:  # again where a page has come while connections were closed
            await self._run_once()

    async def _run_once(self) -> None:
        """Look until no page is open, with one source after the other; the last one is closed then."""
        source: Source | None = None
        try:
            while self._is_wanted:
                began = time.monotonic()
                last, source = source, None  # a look that is left closes its source itself
                source = await self._look(last)
                await asyncio.sleep(max(self._every_seconds, time.monotonic() - began))
        finally:
            self._usage = UsageSeries()
            self.history, self._trouble, self._asked_at = None, "", None  # old, it would be shown as new
            if source is not None:
                await _closed(source)

    def usage_of(self, entity: str) -> list[Document]:
        """The use of an entity's limits over time."""
        return self._usage.documents(entity)

    async def _taken(self, source: Source) -> History:
        """Take a look in a thread. Raises AdminError."""
        looking = Looking(source, partial(_looked, source, self.history, self._usage, self._looks_max))
        try:
            return await aside(looking.take)
        except asyncio.CancelledError:
            looking.leave()
            raise

    async def _look(self, source: Source | None) -> Source | None:
        """Take a look; returns the source for the next one, if there is one that may be used again."""
        self._asked_at = time.monotonic()
        try:
            source = source or self._make_source()
            self.history, self._trouble = await self._taken(source), ""
        except AdminError as error:
            self._trouble = str(error)
        except Exception as error:
            LOGGER.exception("a look at the cluster has failed")
            self._trouble = f"unexpected error: {error!r}"
            if source is not None:
                await _closed(source)
            source = None
        self._asked_at = None
        self.version += 1
        async with self._changed:
            self._changed.notify_all()
        return source


async def _closed(source: Source) -> None:
    """Close a source in a thread: it waits for threads of its own, which may wait for a broker."""
    try:
        await aside(source.close)
    except Exception:
        LOGGER.exception("the connections to a cluster were not closed")


class Looking:
    """A look that a thread takes. Where it is left meanwhile, the thread uses the source still, and closes it then."""

    def __init__(self, source: Source, work: Callable[[], History]) -> None:
        self._source, self._work = source, work
        self._lock = threading.Lock()
        self._is_done = self._is_left = False

    def take(self) -> History:
        """Take the look. Raises what the source raises."""
        try:
            return self._work()
        finally:
            self._note(is_done=True)

    def leave(self) -> None:
        """Take no more interest in it."""
        self._note(is_left=True)

    def _note(self, *, is_done: bool = False, is_left: bool = False) -> None:
        with self._lock:
            self._is_done, self._is_left = self._is_done or is_done, self._is_left or is_left
            is_over = self._is_done and self._is_left
        if is_over:
            self._source.close()


def _looked(source: Source, before: History | None, usage: UsageSeries, looks_max: int) -> History:
    """Take a look and note the use of each limit: in a thread, as it takes a while with very many of them. A look that
    ends after its watch adds to a series that is shown no more.
    """
    history = History.after(before, source.take(), looks_max)
    if history.now.pages:
        usage.add(time.time() * 1000, quotas(history).rows)
    return history
