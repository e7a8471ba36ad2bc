"""Isolates unexpected errors to the resource that caused them, with exponential back-off.

Whatever a resource says, and whatever goes wrong while one is looked at, costs that one resource: it shows the fault as
a condition, the others go on, and so do the brokers. A fault is told once with its traceback, and what it befell is
tried again after a pause that doubles, at once when the resource is changed.

What an API server refuses or does not answer is no fault of ours, and passes: it is told as what it is, and is tried
again within seconds, since what was done before it stays done.
"""

import traceback
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from kavka_operator.domain.plan import Word, stalled
from kavka_operator.loop.interfaces import NotWrittenError

PAUSE_SECONDS_MIN = 1.0
PAUSE_SECONDS_MAX = 60.0
OUTSIDE_SECONDS_MAX = 1.0
REASON = "ReconcileError"
OUTSIDE = "PlatformUnavailable"
WORDS_LENGTH_MAX = 1000


@dataclass(slots=True)
class _UnexpectedError:
    version: Hashable
    words: str
    times: int
    retry_at: datetime
    is_ours: bool

    @property
    def pause_seconds(self) -> float:
        return min(pause_seconds(self.times), PAUSE_SECONDS_MAX if self.is_ours else OUTSIDE_SECONDS_MAX)

    def told(self) -> tuple[Word, ...]:
        if not self.is_ours:
            return stalled(OUTSIDE, f"{self.words}; it is tried again")
        return stalled(
            REASON, f"{self.words}; this is a fault of the operator's own, told in its log, and it is tried again"
        )


@dataclass(slots=True)
class UnexpectedErrors:
    """The unexpected errors that are not over, by subject. `tell` takes the words and the traceback."""

    tell: Callable[[str], None]
    _known: dict[Hashable, _UnexpectedError] = field(default_factory=dict)

    def note(self, subject: Hashable, error: Exception, now: datetime, version: Hashable = None) -> tuple[Word, ...]:
        """Note a fault; the words for the status."""
        is_ours = not isinstance(error, NotWrittenError)
        words = describe(error) if is_ours else _line(error)
        before = self._known.get(subject)
        if before is None or before.words != words:
            self.tell(f"{_named(subject)}: {words}{_trace(error) if is_ours else ''}")
        times = before.times + 1 if before is not None and before.version == version else 1
        noted = _UnexpectedError(version, words, times, now, is_ours)
        self._known[subject] = replace(noted, retry_at=now + timedelta(seconds=noted.pause_seconds))
        return noted.told()

    def waiting(self, subject: Hashable, now: datetime, version: Hashable = None) -> tuple[Word, ...]:
        """The words for a subject that is not to be tried again yet; empty if it may be tried."""
        known = self._known.get(subject)
        if known is None or known.version != version or now >= known.retry_at:
            return ()
        return known.told()

    def pause_seconds(self, subject: Hashable) -> float:
        """The pause between the last fault and the next try; 0 if there was no fault."""
        known = self._known.get(subject)
        return known.pause_seconds if known is not None else 0.0

    def seconds_left(self, subject: Hashable, now: datetime) -> float:
        """The seconds until a subject may be tried again; 0 if it may be tried now."""
        known = self._known.get(subject)
        return max(0.0, (known.retry_at - now).total_seconds()) if known is not None else 0.0

    def clear(self, subject: Hashable) -> None:
        """Forget the faults of a subject that went well."""
        self._known.pop(subject, None)


def describe(error: Exception) -> str:
    """A fault in one line."""
    text = _line(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def pause_seconds(times: int) -> float:
    """The pause after so many faults in a row."""
    return min(PAUSE_SECONDS_MIN * 2.0 ** min(times - 1, 16), PAUSE_SECONDS_MAX)


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:WORDS_LENGTH_MAX]


def _trace(error: Exception) -> str:
    return "\n" + "".join(traceback.format_exception(error)).rstrip()


def _named(subject: Hashable) -> str:
    """`Topic "orders"` for a key, the text itself for anything else."""
    return f'{subject[0]} "{subject[2]}"' if isinstance(subject, tuple) else str(subject)
