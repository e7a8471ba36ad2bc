"""How fast connections come from each address, as far as a limit is measured; what limits hold, or would hold, of them.

Of addresses that connect as fast as that, `ADDRESSES_MAX` are known apart; those beyond have one rate in common.
"""

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Final

from kavka_broker.core.quota.entity import IpEntity
from kavka_broker.core.quota.rate import SampledRate, SampleWindow
from kavka_broker.core.quota.resolve import entity_of_ip
from kavka_broker.loop.slices import Cost, Work
from kavka_broker.quotas.entity_usage import ENTITIES_MAX, EntityUsage, shown_of
from kavka_broker.quotas.observe_mode import WouldBeHeld
from kavka_broker.quotas.sensor import HeldTime

ADDRESSES_MAX: Final = 10_000
OTHERS: Final = "__other__"
"""Stands for the addresses that are not known apart."""
RATE_COST: Final = 4  # of a slice


class AddressRates:
    """A rate for each address."""

    def __init__(self, window: SampleWindow, addresses_max: int = ADDRESSES_MAX) -> None:
        self._window = window
        self.addresses_max = addresses_max
        self._rates: OrderedDict[str, SampledRate] = OrderedDict()  # in the order of their last connections
        self._used_ms: dict[str, int] = {}

    def of(self, address: str, now_ms: int) -> SampledRate:
        """Return the rate in which a connection that comes now counts."""
        if address not in self._rates and not self._has_room(now_ms):
            address = OTHERS
        rate = self._rates.setdefault(address, SampledRate(self._window))
        self._rates.move_to_end(address)
        self._used_ms[address] = now_ms
        return rate

    def latest(self, count_max: int) -> Iterator[tuple[str, SampledRate]]:
        """Yield the rates of the addresses that came last."""
        yield from list(islice(reversed(self._rates.items()), count_max))  # some may be forgotten meanwhile

    def _has_room(self, now_ms: int) -> bool:
        """Forget who has not come for a window, so far as room is needed."""
        if len(self._rates) < self.addresses_max:
            return True
        oldest = next(iter(self._rates))
        if now_ms - self._used_ms[oldest] < self._window.span_ms:
            return False
        del self._rates[oldest], self._used_ms[oldest]
        return True


class ObservedAddresses:
    """Limits of addresses that are only observed: how long they would hold connections, while none is.

    A connection that would be above the rate counts in it no more than where the limit is in force.
    """

    def __init__(self, window: SampleWindow, addresses_max: int = ADDRESSES_MAX) -> None:
        self._window = window
        self._addresses_max = addresses_max
        self._limits: Mapping[IpEntity, float] = {}
        self._would: dict[IpEntity, WouldBeHeld] = {}
        self._rates = AddressRates(window, addresses_max)

    def observe(self, enforced: Mapping[IpEntity, float], limits: Mapping[IpEntity, float]) -> None:
        """Take over the limits in force and, over them, those to be observed."""
        self._limits = {**enforced, **limits} if limits else {}
        self._would = {entity: self._would.get(entity) or WouldBeHeld() for entity in limits}
        if not limits:
            self._rates = AddressRates(self._window, self._addresses_max)

    def charge(self, address: str, now_ms: int) -> None:
        """Record a connection that was taken."""
        entity = entity_of_ip(self._limits, address) if self._would else None
        if entity not in self._would:
            return
        rate = self._rates.of(address, now_ms)
        if delay_ms := rate.charge(1, now_ms, self._limits[entity]):
            rate.record(-1, now_ms)
            self._would[entity].delay(min(delay_ms, self._window.size_ms), now_ms)

    def lines(self, now_ms: int) -> Work[list[EntityUsage]]:
        """Return a line for each observed limit; its usage is that of the address that comes fastest."""
        used = yield from used_of(self._limits, self._rates, now_ms)
        return [
            EntityUsage(entity, self._limits[entity], *used.get(entity, (0.0, 0)), would.total_ms(now_ms))
            for entity, would in islice(self._would.items(), ENTITIES_MAX)
        ]


class HeldAddresses:
    """For how long connections above the limits in force are really held."""

    def __init__(self) -> None:
        self._limits: Mapping[IpEntity, float] = {}
        self._held: dict[IpEntity, HeldTime] = {}

    @property
    def limits_total(self) -> int:
        return len(self._limits)

    def limit(self, limits: Mapping[IpEntity, float]) -> None:
        """Take over the limits in force."""
        self._limits = limits
        self._held = {entity: time for entity, time in self._held.items() if entity in limits}

    def of(self, address: str) -> HeldTime:
        """Return the time of the limit that holds an address."""
        entity = entity_of_ip(self._limits, address)
        return HeldTime() if entity is None else self._held.setdefault(entity, HeldTime())

    def lines(self, rates: AddressRates, now_ms: int) -> Work[list[EntityUsage]]:
        """Return a line for each limit, as far as they are shown; those that have held a connection come first."""
        limits = self._limits
        shown = yield from shown_of(limits, self._held, now_ms)
        used = yield from used_of(limits, rates, now_ms)
        return [
            EntityUsage(entity, limit, *used.get(entity, (0.0, 0)), time.any_ms(now_ms), time.connections)
            for entity, limit, time in (
                (entity, limit, self._held.get(entity) or HeldTime()) for entity, limit in shown.items()
            )
        ]


def used_of(
    limits: Mapping[IpEntity, float], rates: AddressRates, now_ms: int
) -> Work[Mapping[IpEntity, tuple[float, int]]]:
    """Measure the address that comes fastest under each limit, and count the addresses."""
    used, cost = dict[IpEntity, tuple[float, int]](), Cost()
    for address, rate in rates.latest(rates.addresses_max + 1):
        entity = entity_of_ip(limits, address)
        if entity is not None:
            usage, addresses = used.get(entity, (0.0, 0))
            used[entity] = max(usage, rate.measure(now_ms)), addresses + 1
        if cost.add(RATE_COST):
            yield
    return used
