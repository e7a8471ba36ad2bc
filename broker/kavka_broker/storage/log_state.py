"""What all parts of one log share: where it begins and ends, and whether it can still be used."""

from collections.abc import Callable

from kavka_broker.logs import get
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.storage.file_names import PartitionName

log = get("storage")


class LogState:
    """The log grows at its end (`Log._write`) and begins later (`Log.advance_start`); `Truncation` moves both."""

    __slots__ = (
        "cleaned_offset",
        "end_offset",
        "has_begun",
        "is_changed",
        "is_closed",
        "is_failed",
        "name",
        "on_changed",
        "on_failed",
        "start_offset",
        "truncations",
    )

    def __init__(self, name: PartitionName, start_offset: int, end_offset: int, *, has_begun: bool) -> None:
        assert 0 <= start_offset <= end_offset, f"{name} begins at {start_offset} and ends at {end_offset}"
        self.name = name
        self.start_offset = start_offset
        self.end_offset = end_offset
        self.cleaned_offset = 0  # up to where a cleaning has come
        self.truncations = 0  # how often it was cut: what was read before may be gone
        self.has_begun = has_begun  # otherwise an append has to look whether it may
        self.is_closed = False
        self.is_failed = False
        # Called once, when what is on the disk is not known any more; perhaps in the thread that found out.
        self.on_failed: Callable[[], None] = _nothing
        # Whether housekeeping has to look at this log; `on_changed` tells it when that begins.
        self.is_changed = True
        self.on_changed: Callable[[], None] = _nothing

    def note_changed(self) -> None:
        """It has grown, was cut, moved its start or let go of files: there are checkpoints to write, or more to do."""
        if not self.is_changed:
            self.is_changed = True
            self.on_changed()

    def fail(self) -> None:
        """Take the log out of use: what is on the disk is not known any more."""
        if not self.is_failed:
            self.is_failed = True
            self.on_failed()

    def storage_error(self, what: str, problem: OSError) -> BrokerError:
        """What a client is told where the disk has refused."""
        log.error("log.failed", log=str(self.name), what=what, reason=str(problem))
        return BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, f"{self.name}: {what}: {problem.strerror}")


def _nothing() -> None:
    return
