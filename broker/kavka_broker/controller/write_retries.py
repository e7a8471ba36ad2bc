"""Tries writes of the metadata log again while the disk has no room, and says so now and then."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from kavka_broker.core.raft.effects import Effect, Note
from kavka_broker.logs import get
from kavka_broker.protocol.errors import BrokerError

log = get("raft")

ROOM_RETRY_MS: Final = 1_000
"""The pause before a write to a full disk is tried again."""
WARNING_INTERVAL_MS: Final = 10_000
"""The least interval between warnings of the same kind."""


class Notes:
    """Logs notes of the rules; a repeated warning at most once per `WARNING_INTERVAL_MS`. Their kinds are few."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._quiet_until_ms: dict[str, int] = {}

    def log(self, note: Note) -> None:
        if not note.is_warning:
            log.info(note.event, **note.fields)
        elif (now_ms := self._now_ms()) >= self._quiet_until_ms.get(note.event, 0):
            self._quiet_until_ms[note.event] = now_ms + WARNING_INTERVAL_MS
            log.warning(note.event, **note.fields)


class WriteRetries:
    """Writes until that succeeds. `waits_for_room`: the disk is full, and nothing new is taken note of."""

    def __init__(self, notes: Notes) -> None:
        self.waits_for_room = False
        self._notes = notes

    async def write(
        self,
        write: Callable[[], Awaitable[None]],
        may_try_again: Callable[[BrokerError | OSError], bool],
        problem: BrokerError | OSError | None = None,
    ) -> list[Effect]:
        """Write until the disk has room; with the problem of a first try, wait before the next. Returns no effects.
        Raises a problem after which a write may not be tried again.
        """
        while True:
            if problem is not None:
                self.waits_for_room = True
                self._notes.log(Note("metadata.write.refused", {"reason": str(problem)}, is_warning=True))
                await asyncio.sleep(ROOM_RETRY_MS / 1000)
            try:
                await write()
            except (BrokerError, OSError) as again:
                if not may_try_again(again):
                    raise
                problem = again
            else:
                self.waits_for_room = False
                return []
