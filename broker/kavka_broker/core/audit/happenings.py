"""What happens to clients, counted by window: one update of a dict each time, one event a kind in each window.

A refused client may ask again a thousand times a second. All that is told of it within a window is the same but for the
moment, so one event tells how often it happened.
"""

from typing import Final, NamedTuple

from kavka_broker.core.audit.changes import Change
from kavka_broker.core.audit.use import NAME_CHARACTERS_MAX, Throttling, Use

KINDS_MAX: Final = 5_000
"""Different happenings that one window counts, which are taken in 5 ms; further ones are lost, and counted as such."""


class Denied(NamedTuple):
    """A client was refused an operation on a resource."""

    principal: str
    address: str
    operation: str  # WRITE
    resource_type: str  # topic
    resource: str


class LoggedIn(NamedTuple):
    """A client has proved to be a user, or has failed to: then it has no name that could be believed."""

    user: str | None
    address: str
    listener: str


class Changed(NamedTuple):
    """A client has changed something of the cluster."""

    principal: str
    address: str
    client_id: str
    change: Change


Happening = Denied | LoggedIn | Changed | Use | Throttling


class Tally(NamedTuple):
    """How often something happened in a window, in milliseconds since 1970."""

    happening: Happening
    times: int
    start_ms: int
    end_ms: int


class Window:
    """Happenings since the last time they were taken."""

    __slots__ = ("_counts", "_start_ms", "lost")

    def __init__(self, now_ms: int) -> None:
        self._counts: dict[Happening, int] = {}
        self._start_ms = now_ms
        self.lost = 0

    def note(self, happening: Happening) -> None:
        """Count a happening; it is lost where the window has no room for another kind."""
        count = self._counts.get(happening, 0)
        if count or len(self._counts) < KINDS_MAX:
            self._counts[happening] = count + 1
        else:
            self.lost += 1

    def denied(self, principal: str, address: str, operation: str, resource_type: str, resource: str) -> None:
        """Count a refusal."""
        cut = slice(NAME_CHARACTERS_MAX)
        self.note(Denied(principal[cut], address, operation, resource_type, resource[cut]))

    def logged_in(self, user: str | None, address: str, listener: str) -> None:
        """Count a login; `user` is None for one that failed."""
        self.note(LoggedIn(None if user is None else user[:NAME_CHARACTERS_MAX], address, listener))

    def changed(self, principal: str, address: str, client_id: str, change: Change) -> None:
        """Count a change."""
        cut = slice(NAME_CHARACTERS_MAX)
        value, previous = (None if text is None else text[cut] for text in (change.value, change.previous))
        kept = change._replace(resource=change.resource[cut], key=change.key[cut], value=value, previous=previous)
        self.note(Changed(principal[cut], address, client_id[cut], kept))

    def take(self, now_ms: int) -> tuple[list[Tally], int]:
        """Return what happened, and how much was lost, and begin again. A clock that went back ends no window before
        its start.
        """
        end_ms = max(now_ms, self._start_ms)
        taken = [Tally(happening, count, self._start_ms, end_ms) for happening, count in self._counts.items()]
        lost, self.lost, self._counts, self._start_ms = self.lost, 0, {}, now_ms
        return taken, lost
