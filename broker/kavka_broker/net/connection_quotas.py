"""How many connections the listeners of one role hold (KIP-402); `connection_rates` says how fast they come (KIP-612).

`max.connections` counts the connections of all listeners, `listener.name.X.max.connections` those of one, which is else
bound by `max.connections` too. Where either is reached the listener takes no more; who comes waits in the kernel's
backlog until somebody leaves. The listener that brokers talk through is protected where there is another: it takes
connections whatever the others hold, and for each too many the one that was idle the longest elsewhere is closed.

`max.connections.per.ip` with its overrides counts an address over all listeners; who comes above it is closed at once.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from kavka_broker.core.quota.rate import SampleWindow
from kavka_broker.net.connection_rates import ConnectionRates

INT_MAX: Final = 2**31 - 1


class Closable(Protocol):
    """A connection, as far as its count goes."""

    last_active_ms: float

    def close(self, reason: str, /) -> None: ...


@dataclass(frozen=True, slots=True)
class ConnectionBounds:
    """What a configuration allows."""

    connections_max: int = INT_MAX
    per_listener: Mapping[str, int] = field(default_factory=dict)
    per_ip_max: int = INT_MAX
    per_address: Mapping[str, int] = field(default_factory=dict)

    def of_listener(self, name: str) -> int:
        return self.per_listener.get(name, self.connections_max)

    def of_address(self, address: str) -> int:
        return self.per_address.get(address, self.per_ip_max)


@dataclass(slots=True)
class _Listening:
    """One listener: how many connections it holds, those that are about to be made included."""

    count: int
    connections: Iterable[Closable]
    tell: Callable[[], None]


class ConnectionQuotas:
    """Counts for all listeners of a role. `protected` names the one through which brokers talk to each other."""

    def __init__(
        self, bounds: ConnectionBounds | None = None, protected: str = "", window: SampleWindow | None = None
    ) -> None:
        self.rates = ConnectionRates(window, protected)
        self._bounds = bounds or ConnectionBounds()
        self._protected = protected
        self._listeners: dict[str, _Listening] = {}
        self._per_address: Counter[str] = Counter()
        self._leaving: dict[Closable, None] = {}  # were closed for others, and are counted until they are gone

    @property
    def bounds(self) -> ConnectionBounds:
        return self._bounds

    def join(self, listener: str, connections: Iterable[Closable], tell: Callable[[], None]) -> None:
        """Count a listener's connections too; `tell` is called whenever there may be room again."""
        self._listeners[listener] = _Listening(0, connections, tell)
        self.rates.join(listener)

    def alter(self, bounds: ConnectionBounds) -> None:
        """Hold to other bounds from now on. As in Apache Kafka, those that are there end only if all are too many."""
        self._bounds = bounds
        self._close_excess()
        self._tell_all()

    def has_room(self, listener: str) -> bool:
        """Whether the listener may take one more."""
        if self._listeners[listener].count >= self._bounds.of_listener(listener):
            return False
        return self._is_protected(listener) or self._total < self._bounds.connections_max

    def take(self, listener: str) -> None:
        """Count a connection that is about to be made."""
        self._listeners[listener].count += 1
        self._close_excess()

    def admits(self, connection: Closable, address: str) -> bool:
        """Count a connection that was made, of this address, until its `release`; whether it may have so many."""
        self._per_address[address] += 1
        is_admitted = self._per_address[address] <= self._bounds.of_address(address)
        if not is_admitted:
            self._leaving[connection] = None  # by itself: no other connection has to go for it
        self._close_excess()  # those that were still being made could not be closed for others
        return is_admitted

    def release(self, listener: str, connection: Closable, address: str) -> None:
        """A connection is gone."""
        self._leaving.pop(connection, None)
        self._per_address[address] -= 1
        if not self._per_address[address]:
            del self._per_address[address]
        self.give_back(listener)

    def give_back(self, listener: str) -> None:
        """A connection that was about to be made is not, or it is gone."""
        self._listeners[listener].count -= 1
        self._tell_all()

    @property
    def _total(self) -> int:
        return sum(listener.count for listener in self._listeners.values())

    def _is_protected(self, listener: str) -> bool:
        return listener == self._protected and len(self._listeners) > 1

    def _tell_all(self) -> None:
        for listener in self._listeners.values():
            listener.tell()

    def _close_excess(self) -> None:
        excess = self._total - len(self._leaving) - self._bounds.connections_max
        if excess <= 0:
            return
        longest_idle_first = sorted(self._closable(), key=lambda connection: connection.last_active_ms)
        for connection in longest_idle_first[:excess]:
            self._leaving[connection] = None
            connection.close(f"more than max.connections={self._bounds.connections_max}")

    def _closable(self) -> Iterator[Closable]:
        for name, listener in self._listeners.items():
            if not self._is_protected(name):
                yield from (connection for connection in listener.connections if connection not in self._leaving)
