"""The addresses of a node: what it listens on, by whom it is served there, and what it tells others of it."""

from collections.abc import Iterator
from dataclasses import replace

from kavka_broker.api.dispatch import Dispatcher
from kavka_broker.core.config.broker import BrokerConfig
from kavka_broker.core.config.definition import ConfigError
from kavka_broker.core.config.listeners import Listener as Address
from kavka_broker.core.config.unserved import check_promises, without_effect
from kavka_broker.logs import get
from kavka_broker.net.listener import Limits, Listener
from kavka_broker.net.request_memory import RequestMemory
from kavka_broker.seams import Clock
from kavka_broker.timers import Timers

log = get("runtime")

SERVED_PROTOCOLS = ("PLAINTEXT",)


class StartError(Exception):
    """The broker cannot start as it is configured or as its directories are; the message says what to do."""


class Addresses:
    """The listeners of one node. They are bound early, so that the ports are known, and serve when all else stands."""

    def __init__(self, config: BrokerConfig, clock: Clock, timers: Timers) -> None:
        self._config = self._limited_by = config
        self._clock = clock
        self._timers = timers
        self.of_brokers: list[Listener] = []
        self.of_controllers: list[Listener] = []
        self.advertised: tuple[Address, ...] = ()
        self.controllers: tuple[Address, ...] = ()

    def __iter__(self) -> Iterator[Listener]:
        yield from self.of_brokers
        yield from self.of_controllers

    async def bind(self) -> None:
        """Take every address of this node's roles. Raises StartError."""
        roles = self._config.roles
        if "controller" in roles:
            ports = await self._bind_all(self._config.controller_listeners, self.of_controllers)
            self.controllers = tuple(
                replace(one, port=one.port or ports[one.name]) for one in self._config.advertised_controllers
            )
        if "broker" in roles:
            ports = await self._bind_all(self._config.listeners, self.of_brokers)
            self.advertised = tuple(
                replace(one, port=one.port or ports[one.name]) for one in self._config.advertised_listeners
            )

    async def _bind_all(self, addresses: tuple[Address, ...], listeners: list[Listener]) -> dict[str, int]:
        ports, limits = {}, limits_of(self._config)
        for address in addresses:
            listener = Listener(address.name, None, limits, self._clock, self._timers)
            try:
                ports[address.name] = await listener.bind(address.host, address.port)
            except OSError as problem:
                raise StartError(f"listeners: {address}: {problem.strerror}") from problem
            listeners.append(listener)
        return ports

    async def serve_controllers(self, dispatcher: Dispatcher) -> None:
        await self._serve(self.of_controllers, dispatcher)

    async def serve_brokers(self, dispatcher: Dispatcher) -> None:
        await self._serve(self.of_brokers, dispatcher)

    async def _serve(self, listeners: list[Listener], dispatcher: Dispatcher) -> None:
        for listener in listeners:
            listener.dispatcher = dispatcher
            await listener.serve()

    def limit_brokers(self, config: BrokerConfig) -> None:
        """How many connections the listeners of brokers take from now on; those that are there stay."""
        if config is self._limited_by:
            return
        self._limited_by = config
        for listener in self.of_brokers:
            listener.limits = limits_of(config)

    async def close_brokers(self) -> None:
        for listener in self.of_brokers:
            await listener.close()

    async def close(self) -> None:
        """Give every address up; those of brokers may be closed already."""
        for listener in self:
            await listener.close()


def check(config: BrokerConfig) -> None:
    """What this version cannot be. Raises StartError."""
    for address in config.all_listeners:
        if address.security_protocol not in SERVED_PROTOCOLS:
            raise StartError(f"listeners: {address.name} is {address.security_protocol}; this version serves PLAINTEXT")
    try:
        check_promises(config.given)
    except ConfigError as error:
        raise StartError(str(error)) from None
    for name in config.unknown:
        log.warning("config.unknown", key=name)
    for name in without_effect(config.given):
        log.warning("config.unserved", key=name)


def limits_of(config: BrokerConfig) -> Limits:
    overrides = config["max.connections.per.ip.overrides"]
    pairs = (item.rpartition(":") for item in overrides.split(",") if item)
    return Limits(
        request_bytes_max=config["socket.request.max.bytes"],
        connections_max=config["max.connections"],
        connections_per_ip_max=config["max.connections.per.ip"],
        per_ip_overrides={address.strip(): int(count) for address, _, count in pairs},
        idle_ms_max=config["connections.max.idle.ms"],
        memory=RequestMemory(config["queued.max.request.bytes"]),
    )
