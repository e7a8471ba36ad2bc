"""How fast connections may come: to all listeners of a role, to each of them, and from each address (KIP-612).

A connection above the rate of the broker or of its listener is taken, and the listener then takes no more until the
delay is over: who comes meanwhile waits in the kernel's backlog. The listener that brokers talk through is not bound by
the broker's rate where there is another. A connection above the rate of its address is held for the delay, unheard, and
closed; it counts in no rate, so that one address cannot use up what the others may. A delay is at most one sample long.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from kavka_broker.core.quota.entity import Entity, IpEntity
from kavka_broker.core.quota.rate import SampledRate, SampleWindow
from kavka_broker.core.quota.resolve import as_seen, entity_of_ip, resolve_ip
from kavka_broker.loop.slices import Work
from kavka_broker.net.address_rates import ADDRESSES_MAX, AddressRates, HeldAddresses, ObservedAddresses
from kavka_broker.quotas.entity_usage import EntityUsage

INT_MAX: Final = 2**31 - 1


@dataclass(frozen=True, slots=True)
class RateBounds:
    """Connections a second that a configuration allows."""

    of_broker: int = INT_MAX
    of_listener: Mapping[str, int] = field(default_factory=dict)


class ConnectionRates:
    """Rates for all listeners of a role. `protected` names the one through which brokers talk to each other."""

    def __init__(
        self, window: SampleWindow | None = None, protected: str = "", addresses_max: int = ADDRESSES_MAX
    ) -> None:
        self.window = window or SampleWindow()
        self._protected = protected
        self._bounds = RateBounds()
        self._of_broker = SampledRate(self.window)
        self._of_listener: dict[str, SampledRate] = {}
        self._limits: Mapping[IpEntity, float] = {}
        self._of_address = AddressRates(self.window, addresses_max)
        self.observed: Final = ObservedAddresses(self.window, addresses_max)
        self.held: Final = HeldAddresses()

    def join(self, listener: str) -> None:
        """Measure a listener too."""
        self._of_listener[listener] = SampledRate(self.window)

    def alter(self, bounds: RateBounds) -> None:
        """Hold to other bounds from now on; what was measured stays."""
        self._bounds = bounds

    def limit_addresses(
        self,
        limits: Mapping[Entity | IpEntity, float],
        observed: Mapping[Entity | IpEntity, float] = MappingProxyType({}),
    ) -> None:
        """Hold addresses to other limits from now on, and observe others; what was measured stays."""
        self._limits = as_seen(limits)
        self.observed.observe(self._limits, as_seen(observed))
        self.held.limit(self._limits)

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
        delay_ms = 0 if limit is None else self._charge_address(address, limit, now_ms)
        if delay_ms:
            self.give_back(listener, now_ms)
        else:
            self.observed.charge(address, now_ms)
        return delay_ms

    def limit_of(self, address: str) -> tuple[IpEntity, float] | None:
        """Return the limit of an address with whose it is; None where it has none."""
        entity = entity_of_ip(self._limits, address)
        return None if entity is None else (entity, self._limits[entity])

    def _charge_address(self, address: str, limit: float, now_ms: int) -> int:
        rate = self._of_address.of(address, now_ms)
        if delay_ms := self._charge(rate, limit, now_ms):
            rate.record(-1, now_ms)
        return delay_ms

    def of_broker(self, now_ms: int) -> float:
        """Return the connections a second that count in the broker's rate."""
        return self._of_broker.measure(now_ms)

    def of_listener(self, listener: str, now_ms: int) -> float:
        """Return the connections a second of a listener."""
        return self._of_listener[listener].measure(now_ms)

    def of_addresses(self, count_max: int, now_ms: int) -> Iterator[tuple[str, float]]:
        """Yield the rates of those addresses with a limit that came last."""
        for address, rate in self._of_address.latest(count_max):
            yield address, rate.measure(now_ms)

    def lines(self, now_ms: int) -> Work[list[EntityUsage]]:
        """Return a line for each limit of addresses, as far as they are shown."""
        return self.held.lines(self._of_address, now_ms)

    def _charge(self, rate: SampledRate, limit: float, now_ms: int) -> int:
        return min(rate.charge(1, now_ms, limit), self.window.size_ms)

    def _is_protected(self, listener: str) -> bool:
        return listener == self._protected and len(self._of_listener) > 1
