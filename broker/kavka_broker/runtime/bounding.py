"""How many connections a configuration allows and how fast they may come; names of hosts are resolved for that.

`max.connections.per.ip.overrides` may name hosts. They are asked for off the loop, when the configuration begins to
name them; a name that cannot be resolved binds nobody until it can, and is asked for again a while later.
"""

import asyncio
import ipaddress
import socket
from collections.abc import Mapping
from typing import Final

from kavka_broker.core.config.broker import BrokerConfig
from kavka_broker.core.config.definition import split_list
from kavka_broker.logs import get
from kavka_broker.net.connection_quotas import ConnectionBounds, ConnectionQuotas
from kavka_broker.net.connection_rates import RateBounds
from kavka_broker.timers import Timer, Timers

log = get("runtime")

ASK_AGAIN_MS: Final = 30_000


class Bounding:
    """Keeps `quotas` to the configuration's bounds."""

    def __init__(self, quotas: ConnectionQuotas, timers: Timers) -> None:
        self.quotas = quotas
        self._timers = timers
        self._config: BrokerConfig | None = None
        self._addresses: dict[str, tuple[str, ...]] = {}  # of hosts, by name
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

    def close(self) -> None:
        """Stop resolving names."""
        if self._asking is not None:
            self._asking.cancel()
        if self._again is not None:
            self._again.cancel()

    def _alter(self) -> None:
        assert self._config is not None
        self.quotas.rates.alter(rates_of(self._config))
        self.quotas.alter(bounds_of(self._config, self._addresses))

    def _ask(self) -> None:
        assert self._config is not None
        self._again = None
        hosts = [host for host in overrides_of(self._config) if literal(host) is None and host not in self._addresses]
        if hosts:
            self._asking = asyncio.get_running_loop().create_task(self._resolve(hosts), name="resolve hosts")

    async def _resolve(self, hosts: list[str]) -> None:
        loop = asyncio.get_running_loop()
        for host in hosts:
            try:
                found = await loop.getaddrinfo(host, None, type=socket.SOCK_STREAM)
            except (OSError, UnicodeError) as problem:
                log.warning("config.unresolved", key="max.connections.per.ip.overrides", host=host, reason=str(problem))
            else:
                self._addresses[host] = tuple(address[0] for *_, address in found if isinstance(address[0], str))
        self._alter()
        if any(host not in self._addresses for host in hosts):
            self._again = self._timers.after(ASK_AGAIN_MS, self._ask)


def bounds_of(config: BrokerConfig, addresses: Mapping[str, tuple[str, ...]]) -> ConnectionBounds:
    """Return the bounds of a configuration, where the hosts that it names have these addresses."""
    per_address: dict[str, int] = {}
    for host, count in overrides_of(config).items():
        address = literal(host)
        per_address |= dict.fromkeys(addresses.get(host, ()) if address is None else (address,), count)
    return ConnectionBounds(
        connections_max=config["max.connections"],
        per_listener=config.per_listener("max.connections"),
        per_ip_max=config["max.connections.per.ip"],
        per_address=per_address,
    )


def rates_of(config: BrokerConfig) -> RateBounds:
    """Return the bounds of a configuration on the rates of new connections."""
    return RateBounds(config["max.connection.creation.rate"], config.per_listener("max.connection.creation.rate"))


def overrides_of(config: BrokerConfig) -> dict[str, int]:
    """Return the connections allowed to each host or address that the configuration names."""
    pairs = (item.rpartition(":") for item in split_list(config["max.connections.per.ip.overrides"]))
    return {host.strip().strip("[]"): int(count) for host, _, count in pairs}


def literal(host: str) -> str | None:
    """Return the address as the kernel writes it; None for a name."""
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        return None
