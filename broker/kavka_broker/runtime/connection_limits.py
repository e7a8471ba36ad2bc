"""How many connections a configuration allows and how fast they may come; names of hosts are resolved for that.

`max.connections.per.ip.overrides` and quotas of addresses may name hosts. They are asked for off the loop, when they
are first named; a name that cannot be resolved binds nobody until it can, and is asked for again a while later.
"""

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Mapping
from functools import lru_cache
from typing import Final

from kavka_broker.core.config.broker import BrokerConfig
from kavka_broker.core.config.definition import split_list
from kavka_broker.core.quota.entity import Entity, IpEntity
from kavka_broker.logs import get
from kavka_broker.loop.timers import Timer, Timers
from kavka_broker.net.connection_quotas import ConnectionBounds, ConnectionQuotas
from kavka_broker.net.connection_rates import RateBounds
from kavka_broker.quotas.client_quotas import OfEntities

log = get("runtime")

ASK_AGAIN_MS: Final = 30_000
LITERALS_KEPT_MAX: Final = 16_384

#: The addresses of a host. Raises OSError and UnicodeError.
LookUp = Callable[[str], Awaitable[tuple[str, ...]]]


class Bounding:
    """Keeps `quotas` to the configuration's bounds."""

    def __init__(
        self,
        quotas: ConnectionQuotas,
        timers: Timers,
        look_up: LookUp | None = None,
        ask_again_ms: int = ASK_AGAIN_MS,
    ) -> None:
        self.quotas = quotas
        self._timers = timers
        self._look_up = look_up or look_up_addresses
        self._ask_again_ms = ask_again_ms
        self._config: BrokerConfig | None = None
        self._addresses: dict[str, tuple[str, ...]] = {}  # of hosts, by name
        self._limits: OfEntities = {}
        self._observed: OfEntities = {}
        self._asked: frozenset[str] = frozenset()  # hosts whose addresses are not known yet
        self._asking: asyncio.Task[None] | None = None
        self._again: Timer | None = None

    def follow(self, config: BrokerConfig) -> None:
        """Hold to this configuration from now on."""
        if config is self._config:
            return
        self._config = config
        self.close()
        self._alter()
        self._ask()

    def limit_addresses(self, limits: OfEntities, observed: OfEntities) -> None:
        """Hold addresses to these rates from now on, and observe those."""
        self._limits, self._observed = limits, observed
        self._limit()
        if not self._unknown() <= self._asked:
            self.close()
            self._ask()

    def close(self) -> None:
        """Stop resolving names."""
        if self._asking is not None:
            self._asking.cancel()
        if self._again is not None:
            self._again.cancel()

    def _alter(self) -> None:
        if self._config is not None:
            self.quotas.rates.alter(rates_of(self._config))
            self.quotas.alter(bounds_of(self._config, self._addresses))

    def _limit(self) -> None:
        limits, observed = (addressed(rates, self._addresses) for rates in (self._limits, self._observed))
        self.quotas.rates.limit_addresses(limits, observed)

    def _named(self) -> frozenset[str]:
        """Return the hosts that are named by their names."""
        of_overrides = {} if self._config is None else overrides_of(self._config)
        hosts = (host for host in of_overrides if literal(host) is None)
        return frozenset((*hosts, *hosts_of(self._limits), *hosts_of(self._observed)))

    def _unknown(self) -> frozenset[str]:
        return frozenset(host for host in self._named() if host not in self._addresses)

    def _ask(self) -> None:
        self._again, self._asked = None, self._unknown()
        if self._asked:
            hosts = sorted(self._asked)
            self._asking = asyncio.get_running_loop().create_task(self._resolve(hosts), name="resolve hosts")

    async def _resolve(self, hosts: list[str]) -> None:
        named = self._named()
        self._addresses = {host: found for host, found in self._addresses.items() if host in named}
        for host in hosts:
            try:
                self._addresses[host] = await self._look_up(host)
            except (OSError, UnicodeError) as problem:
                log.warning("host.unresolved", host=host, reason=str(problem), limits="no connection of it")
        self._alter()
        self._limit()
        if any(host not in self._addresses for host in hosts):
            self._again = self._timers.after(self._ask_again_ms, self._ask)


async def look_up_addresses(host: str) -> tuple[str, ...]:
    """Return the addresses of a host. Raises OSError and UnicodeError."""
    found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return tuple(address[0] for *_, address in found if isinstance(address[0], str))


def hosts_of(limits: OfEntities) -> list[str]:
    """Return the hosts that quotas of addresses name by their names."""
    named = (entity.ip for entity in limits if isinstance(entity, IpEntity) and isinstance(entity.ip, str))
    return [host for host in named if literal(host) is None]


def addressed(limits: OfEntities, addresses: Mapping[str, tuple[str, ...]]) -> OfEntities:
    """Return the limits with those of hosts at their addresses, where no limit is set on the address itself."""
    if not (hosts := hosts_of(limits)):
        return limits
    of_hosts: dict[Entity | IpEntity, float] = {
        IpEntity(address): limits[IpEntity(host)] for host in hosts for address in addresses.get(host, ())
    }
    by_name = dict.fromkeys(IpEntity(host) for host in hosts)
    return {**of_hosts, **{entity: limit for entity, limit in limits.items() if entity not in by_name}}


def bounds_of(config: BrokerConfig, addresses: Mapping[str, tuple[str, ...]]) -> ConnectionBounds:
    """Return the bounds of a configuration, where the hosts that it names have these addresses."""
    per_address: dict[str, int] = {}
    for host, count in overrides_of(config).items():
        address = literal(host)
        per_address |= dict.fromkeys(addresses.get(host, ()) if address is None else (address,), count)
    return ConnectionBounds(
        connections_max=config["max.connections"],
        per_listener=config.listeners.bounds["max.connections"],
        per_ip_max=config["max.connections.per.ip"],
        per_address=per_address,
    )


def rates_of(config: BrokerConfig) -> RateBounds:
    """Return the bounds of a configuration on the rates of new connections."""
    return RateBounds(config["max.connection.creation.rate"], config.listeners.bounds["max.connection.creation.rate"])


def overrides_of(config: BrokerConfig) -> dict[str, int]:
    """Return the connections allowed to each host or address that the configuration names."""
    pairs = (item.rpartition(":") for item in split_list(config["max.connections.per.ip.overrides"]))
    return {host.strip().strip("[]"): int(count) for host, _, count in pairs}


@lru_cache(maxsize=LITERALS_KEPT_MAX)
def literal(host: str) -> str | None:
    """Return the address as the kernel writes it; None for a name."""
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        return None
