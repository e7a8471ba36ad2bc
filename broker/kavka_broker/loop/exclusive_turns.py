"""Work that goes one by one where it is about the same thing, such as a group, and otherwise side by side."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager


class ExclusiveTurns:
    """Turns by a key, first come first served. A key that nobody holds or awaits takes no memory."""

    def __init__(self) -> None:
        self._locks: dict[str, tuple[asyncio.Lock, int]] = {}  # with the number of those that hold or await it

    def is_taken(self, key: str) -> bool:
        """Whether the turn is held or waited for."""
        return key in self._locks

    def of(self, key: str) -> AbstractAsyncContextManager[None]:
        """Return the turn, to be entered; its place in the line is taken by this call."""
        lock, count = self._locks.get(key) or (asyncio.Lock(), 0)
        self._locks[key] = lock, count + 1
        return self._taken(key, lock)

    @asynccontextmanager
    async def _taken(self, key: str, lock: asyncio.Lock) -> AsyncIterator[None]:
        try:
            async with lock:
                yield
        finally:
            _, count = self._locks.pop(key)
            if count > 1:
                self._locks[key] = lock, count - 1
