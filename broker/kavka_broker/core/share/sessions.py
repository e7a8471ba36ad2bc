"""Share sessions: which partitions a member of a share group fetches from this broker (KIP-932).

Epoch 0 opens a session, or opens it again; each request after it has the next epoch, and -1 ends it.
"""

from collections.abc import Callable, Collection, Generator, Iterable
from typing import Final, NamedTuple

from kavka_broker.protocol.errors import BrokerError, ErrorCode

INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
EPOCH_MAX: Final = 2**31 - 1
PLACES_MAX: Final = 200_000
"""Partitions of all sessions together."""

NAMES_BYTES_MAX: Final = 8 * 1024 * 1024
"""The names of groups and members in all sessions together, four bytes a character."""

Place = tuple[bytes, int]
"""A topic id and the index of a partition."""


class SessionKey(NamedTuple):
    """A member of a group."""

    group_id: str
    member_id: str


def _size_of(key: SessionKey) -> int:
    return 4 * (len(key.group_id) + len(key.member_id))


class ShareSession:
    """The session of one member. `places` keeps the order in which partitions are served. Invariant: `acquired_from`
    has none that `places` has not; records of a partition that is taken out are the member's until their locks end.
    """

    __slots__ = ("acquired_from", "counted", "epoch", "is_busy", "key", "on_close", "places")

    def __init__(self, key: SessionKey) -> None:
        self.key = key
        self.epoch = 1
        self.is_busy = False  # with a request: others of the same session, on other connections, are refused
        self.places: dict[Place, None] = {}
        self.counted = 0  # of its partitions, among those of all sessions
        self.acquired_from: dict[Place, None] = {}  # of which the member may hold records
        self.on_close: Callable[[], None] = lambda: None

    def acquires(self, place: Place) -> None:
        """Note, as records are acquired, that the member may hold some of a partition."""
        assert place in self.places, place
        self.acquired_from[place] = None

    def served(self, place: Place) -> None:
        """Note that a fetch is over in which a partition gave records: the others come first next time."""
        if place in self.places:
            del self.places[place]
            self.places[place] = None

    def forget(self, place: Place) -> None:
        """Take a partition out."""
        del self.places[place]
        self.acquired_from.pop(place, None)


class ShareSessions:
    """The sessions of one broker, `sessions_max` at most."""

    def __init__(
        self, sessions_max: int, *, places_max: int = PLACES_MAX, names_bytes_max: int = NAMES_BYTES_MAX
    ) -> None:
        self._places_max, self._names_bytes_max = places_max, names_bytes_max
        self.by_key: dict[SessionKey, ShareSession] = {}
        self.places = 0
        self.names_bytes = 0
        self._sessions_max = sessions_max
        self._members: dict[str, int] = {}  # sessions of each group

    def has(self, group_id: str) -> bool:
        """Whether a group has a session."""
        return group_id in self._members

    def open(self, key: SessionKey, places: Iterable[Place]) -> ShareSession:
        """Open a session; one that the member had must be closed. Raises SHARE_SESSION_LIMIT_REACHED."""
        wanted = dict.fromkeys(places)
        names_bytes = self.names_bytes + _size_of(key)
        has_room = len(self.by_key) < self._sessions_max and names_bytes <= self._names_bytes_max
        if not has_room or self.places + len(wanted) > self._places_max:
            raise BrokerError(ErrorCode.SHARE_SESSION_LIMIT_REACHED)
        self.names_bytes = names_bytes
        session = self.by_key[key] = ShareSession(key)
        session.places = wanted
        session.counted = len(wanted)
        self.places += len(wanted)
        self._members[key.group_id] = self._members.get(key.group_id, 0) + 1
        return session

    def resume(self, key: SessionKey, epoch: int) -> ShareSession:
        """Return the session of a request with this epoch, which comes next or is the last one. Raises BrokerError and
        changes nothing.
        """
        session = self.by_key.get(key)
        if session is None:
            raise BrokerError(ErrorCode.SHARE_SESSION_NOT_FOUND)
        if epoch == FINAL_EPOCH:
            return session
        if epoch != session.epoch or session.is_busy:
            raise BrokerError(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
        session.epoch = 1 if epoch == EPOCH_MAX else epoch + 1
        return session

    def alter(
        self, session: ShareSession, added: Collection[Place], forgotten: Collection[Place]
    ) -> Generator[int, None, None]:
        """Take partitions away and add others, yielding what each step costs; given up where the session is closed
        meanwhile. Raises SHARE_SESSION_LIMIT_REACHED and changes nothing where there would be too many partitions.
        """
        growth = 0
        for place in added:
            growth += place not in session.places or place in forgotten
            yield 1
        for place in forgotten:
            growth -= place in session.places
            yield 1
        if growth > 0 and self.places + growth > self._places_max:
            raise BrokerError(ErrorCode.SHARE_SESSION_LIMIT_REACHED)
        if self.by_key.get(session.key) is not session:
            return
        self.places += growth
        session.counted += growth
        for place in forgotten:
            if place in session.places:
                session.forget(place)
            yield 1
        for place in added:
            session.places.setdefault(place)
            yield 1

    def close(self, session: ShareSession) -> None:
        """Forget a session."""
        if self.by_key.get(session.key) is not session:
            return
        del self.by_key[session.key]
        self.places -= session.counted
        self.names_bytes -= _size_of(session.key)
        group_id = session.key.group_id
        self._members[group_id] -= 1
        if not self._members[group_id]:
            del self._members[group_id]
