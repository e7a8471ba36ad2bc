"""What happens to clients, counted by window: one update of a dict each time, one event a kind in each window.

A refused client may ask again a thousand times a second. All that is told of it within a window is the same except the
moment, so one event tells how often it happened.

A window has room for so many kinds. What is beyond is counted by its operation alone, under OTHERS: its number is told,
and not whose it was. `changes_max` is the room of changes, which a journal that loses none makes larger.

One request may be refused for thousands of names. So that one principal takes no room of others, a window tells
`REFUSALS_MAX` of its refusals apart; the further ones by address and operation, and from more addresses by operation.
"""

from typing import Final, NamedTuple

from kavka_broker.core.audit.changes import Change
from kavka_broker.core.audit.usage import OTHERS, Throttling, Use
from kavka_broker.core.client_names import shortened, shortened_principal

KINDS_MAX: Final = 5_000
"""Different happenings that one window tells apart, which are taken in 5 ms."""
REFUSALS_MAX: Final = 200
"""Different refusals of one principal that one window tells apart."""
ADDRESSES_MAX: Final = 50
"""Refusals of one principal beyond those that still have their address, and no resource."""


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
    protocol: str = "SASL"  # TLS: by a certificate


class Changed(NamedTuple):
    """A client has changed something of the cluster."""

    principal: str
    address: str
    client_id: str
    change: Change


class Lifecycle(NamedTuple):
    """A node has started or is about to stop."""

    operation: str  # START or STOP
    node: str
    version: str


Happening = Denied | LoggedIn | Changed | Lifecycle | Use | Throttling


KINDS: Final = ("denied", "login", "login_failed", "change", "lifecycle", "write", "read", "throttled")


def kind_of(happening: Happening) -> str:
    """Return the word for what happened, of `KINDS`."""
    match happening:
        case Denied():
            return "denied"
        case LoggedIn(user):
            return "login_failed" if user is None else "login"
        case Changed():
            return "change"
        case Lifecycle():
            return "lifecycle"
        case Use():
            return happening.operation.lower()
        case Throttling():
            return "throttled"


class Tally(NamedTuple):
    """How often something happened in a window, in milliseconds since 1970."""

    happening: Happening
    times: int
    start_ms: int
    end_ms: int


class Window:
    """Happenings since the last time they were taken. Changes have room of their own, which no others take."""

    __slots__ = ("_changes", "_counts", "_refusals", "_start_ms", "changes_max")

    def __init__(self, now_ms: int, changes_max: int = KINDS_MAX) -> None:
        self._counts: dict[Happening, int] = {}
        self._changes = 0  # of them
        self._refusals: dict[str, int] = {}  # of them, by principal
        self._start_ms = now_ms
        self.changes_max = changes_max

    def __len__(self) -> int:
        return len(self._counts)

    def note(self, happening: Happening, times: int = 1) -> None:
        """Count a happening, by itself or among the others of its operation."""
        if happening not in self._counts:
            happening = self._with_room(happening)
        if happening not in self._counts:
            self._begin_counting(happening)
        self._counts[happening] += times

    def _begin_counting(self, happening: Happening) -> None:
        self._counts[happening] = 0
        self._changes += isinstance(happening, Changed)
        if isinstance(happening, Denied):
            self._refusals[happening.principal] = self._refusals.get(happening.principal, 0) + 1

    def _with_room(self, happening: Happening) -> Happening:
        """Return a happening as it is counted: by itself, among its principal's, or among the others."""
        if isinstance(happening, Denied):
            happening = self._among_those_of_its_principal(happening)
        return happening if happening in self._counts or self._takes(happening) else among_others(happening)

    def _among_those_of_its_principal(self, denied: Denied) -> Denied:
        refusals = self._refusals.get(denied.principal, 0)
        if refusals < REFUSALS_MAX:
            return denied
        without_resource = denied._replace(resource=OTHERS)
        if refusals < REFUSALS_MAX + ADDRESSES_MAX or without_resource in self._counts:
            return without_resource
        return without_resource._replace(address="")

    def _takes(self, happening: Happening) -> bool:
        """Whether there is room for a kind that has not been counted yet."""
        if isinstance(happening, Changed):
            return self._changes < self.changes_max
        return len(self._counts) - self._changes < KINDS_MAX

    def denied(self, principal: str, address: str, operation: str, resource_type: str, resource: str) -> None:
        """Count a refusal."""
        self.note(Denied(shortened_principal(principal), address, operation, resource_type, shortened(resource)))

    def logged_in(self, user: str | None, address: str, listener: str, protocol: str = "SASL") -> None:
        """Count a login; `user` is None for one that failed."""
        self.note(LoggedIn(None if user is None else shortened(user), address, listener, protocol))

    def changed(self, principal: str, address: str, client_id: str, change: Change) -> None:
        """Count a change."""
        value, previous = (None if text is None else shortened(text) for text in (change.value, change.previous))
        resource, key = shortened(change.resource), shortened(change.key)
        kept = change._replace(resource=resource, key=key, value=value, previous=previous)
        self.note(Changed(shortened_principal(principal), address, shortened(client_id), kept))

    def changed_others(self, change: Change, times: int) -> None:
        """Count changes like this one of which no more is told than what was done to what kind of resource."""
        self.note(among_others(Changed("", "", "", change)), times)

    def take(self, now_ms: int) -> list[Tally]:
        """Return what happened, and begin again. A clock that went back ends no window before its start."""
        end_ms = max(now_ms, self._start_ms)
        taken = [Tally(happening, count, self._start_ms, end_ms) for happening, count in self._counts.items()]
        self._counts, self._changes, self._refusals, self._start_ms = {}, 0, {}, now_ms
        return taken


def among_others(happening: Happening) -> Happening:
    """Return what is told of a happening for which a window has no room: of these there are few kinds."""
    match happening:
        case Denied(_, _, operation, resource_type, _):
            return Denied(f"User:{OTHERS}", "", operation, resource_type, OTHERS)
        case LoggedIn(user, _, listener, protocol):
            return LoggedIn(user and OTHERS, "", listener, protocol)
        case Changed(_, _, _, change):
            return Changed(f"User:{OTHERS}", "", "", Change(change.operation, change.resource_type, OTHERS))
    return happening
