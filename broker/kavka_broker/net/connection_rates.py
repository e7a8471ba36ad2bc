"""How fast connections may come: to all listeners of a role, to each of them, and from each address (KIP-612).

A connection above the rate of the broker or of its listener is taken, and the listener then takes no more until the
delay is over: who comes meanwhile waits in the kernel's backlog. The listener that brokers talk through is not bound by
the broker's rate where there is another. A connection above the rate of its address is held for the delay, unheard, and
closed; it counts in no rate, so that one address cannot use up what the others may. A delay is at most one sample long.

Of addresses that connect as fast as that, `ADDRESSES_MAX` are known apart; those beyond have one rate in common.
"""

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from itertools import islice
from typing import Final

from kavka_broker.core.quota.entity import Entity, IpEntity
from kavka_broker.core.quota.rate import SampledRate, SampleWindow
from kavka_broker.core.quota.resolve import resolve_ip

INT_MAX: Final = 2**31 - 1
ADDRESSES_MAX: Final = 10_000
OTHERS: Final = "__other__"
"""Stands for the addresses that are not known apart."""


@dataclass(frozen=True, slots=True)
class RateBounds:
    """Connections a second that a configuration allows."""

    of_broker: int = INT_MAX
    of_listener: Mapping[str, int] = field(default_factory=dict)


class ConnectionRates:
    """Rates for all listeners of a role. `protected` names the one through which brokers talk to each other."""

    def __init__(self, window: SampleWindow | None = None, protected: str = "") -> None:
        self.window = window or SampleWindow()
        self._protected = protected
        self._bounds = RateBounds()
        self._of_broker = SampledRate(self.window)
        self._of_listener: dict[str, SampledRate] = {}
        self._limits: Mapping[IpEntity, float] = {}
        self._of_address: OrderedDict[str, SampledRate] = OrderedDict()  # in the order of their last connections
        self._used_ms: dict[str, int] = {}

    def join(self, listener: str) -> None:
        """Measure a listener too."""
        self._of_listener[listener] = SampledRate(self.window)

    def alter(self, bounds: RateBounds) -> None:
        """Hold to other bounds from now on; what was measured stays."""
        self._bounds = bounds

    def limit_addresses(self, limits: Mapping[Entity | IpEntity, float]) -> None:
        """Hold addresses to other limits from now on; what was measured stays."""
        self._limits = {
            _as_seen(entity): limit for entity, limit in limits.items() if isinstance(entity, IpEntity) and limit >= 0
        }

    def take(self, listener: str, now_ms: int) -> int:
        """Count a connection; returns the milliseconds until the listener may take the next."""
        own = self._of_listener[listener]
        delay_ms = self._charge(own, self._bounds.of_listener.get(listener, INT_MAX), now_ms)
        if not self._is_protected(listener):
            delay_ms = max(delay_ms, self._charge(self._of_broker, self._bounds.of_broker, now_ms))
        return delay_ms

    def give_back(self, listener: str, now_ms: int) -> None:
        """Count a connection no longer that was taken, and is refused."""
        self._of_listener[listener].record(-1, now_ms)
        if not self._is_protected(listener):
            self._of_broker.record(-1, now_ms)

    def admit(self, listener: str, address: str, now_ms: int) -> int:
        """Count a connection that was taken for its address; where it is above the rate it counts nowhere, and the
        milliseconds are returned for which it should be held.
        """
        limit = resolve_ip(self._limits, address) if self._limits else None
        if limit is None:
            return 0
        rate = self._rate_of(address, now_ms)
        delay_ms = self._charge(rate, limit, now_ms)
        if delay_ms:
            rate.record(-1, now_ms)
            self.give_back(listener, now_ms)
        return delay_ms

    def of_broker(self, now_ms: int) -> float:
        """Return the connections a second that count in the broker's rate."""
        return self._of_broker.measure(now_ms)

    def of_listener(self, listener: str, now_ms: int) -> float:
        """Return the connections a second of a listener."""
        return self._of_listener[listener].measure(now_ms)

    def of_addresses(self, count_max: int, now_ms: int) -> Iterator[tuple[str, float]]:
        """Yield the rates of those addresses with a limit that came last."""
        for address in list(islice(reversed(self._of_address), count_max)):
            yield address, self._of_address[address].measure(now_ms)

    def _charge(self, rate: SampledRate, limit: float, now_ms: int) -> int:
        return min(rate.charge(1, now_ms, limit), self.window.size_ms)

    def _is_protected(self, listener: str) -> bool:
        return listener == self._protected and len(self._of_listener) > 1

    def _rate_of(self, address: str, now_ms: int) -> SampledRate:
        if address not in self._of_address and not self._has_room(now_ms):
            address = OTHERS
        rate = self._of_address.setdefault(address, SampledRate(self.window))
        self._of_address.move_to_end(address)
        self._used_ms[address] = now_ms
        return rate

    def _has_room(self, now_ms: int) -> bool:
        """Forget who has not come for a window, so far as room is needed."""
        if len(self._of_address) < ADDRESSES_MAX:
            return True
        oldest = next(iter(self._of_address))
        if now_ms - self._used_ms[oldest] < self.window.span_ms:
            return False
        del self._of_address[oldest], self._used_ms[oldest]
        return True


def _as_seen(entity: IpEntity) -> IpEntity:
    """Return the entity with its address as the kernel writes it: 2001:DB8:0::7 is 2001:db8::7."""
    if not isinstance(entity.ip, str):
        return entity
    try:
        return IpEntity(str(ip_address(entity.ip)))
    except ValueError:
        return entity  # the name of a host, in metadata that Apache Kafka wrote
