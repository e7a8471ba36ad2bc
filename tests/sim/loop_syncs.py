"""NoSyncHoldsTheLoop: once a broker serves, threads wait for its disk, and the loop does not.

A disk may take seconds for a sync, and all clients would wait with the loop. What may sync there is listed here.
"""

import sys
from collections.abc import Callable, Mapping
from types import CodeType
from typing import Any, Final

from kavka_broker.controller.metadata_log import MetadataLog
from kavka_broker.replica.hosting.moves import Moves
from kavka_broker.storage.durability import Durability
from kavka_broker.storage.log import Log
from tests.sim.events import Events
from tests.sim.loop import Process

ON_LOOP: Final[dict[CodeType, str]] = {
    MetadataLog.truncate.__code__: "nothing of the quorum goes on before its log is cut",
    MetadataLog.start_behind.__code__: "or begins behind a snapshot",
    Moves._finish.__code__: "a copy takes the place of its log, with what came since a thread has synced it",
    Log.append_as_follower.__code__: "an empty log begins again within its append, in front of where its leader begins",
    Durability.secure.__code__: "the first record of a log has come sooner than the thread that syncs its topic's id",
}
FRAMES_TOLD: Final = 5


class LoopSyncs:
    """Which processes serve, and what they sync without a thread."""

    def __init__(self, events: Events, failed: Callable[[str], None]) -> None:
        self._serving: dict[str, None] = {}
        self._failed = failed
        events.listeners["broker.started"] = [self._ready]
        events.listeners["shutdown.begun"] = [self._stopping]

    def _ready(self, process: str, _: Mapping[str, Any]) -> None:
        self._serving[process] = None

    def _stopping(self, process: str, _: Mapping[str, Any]) -> None:
        self._serving.pop(process, None)

    def met(self, process: Process, path: str) -> None:
        """`process` syncs `path` on its loop."""
        if str(process) not in self._serving:
            return
        told = list[str]()
        frame = sys._getframe(1)
        while frame.f_back is not None:
            frame = frame.f_back
            if frame.f_code in ON_LOOP:
                return
            if "kavka_broker" in frame.f_code.co_filename:
                told.append(frame.f_code.co_qualname)
        callers = " < ".join(told[:FRAMES_TOLD])
        self._failed(f"NoSyncHoldsTheLoop: {process} syncs {path} on the loop: {callers}")
