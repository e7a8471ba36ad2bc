"""The addresses of a node: what it listens on, by whom it is served there, and what it tells others of it."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from kavka_broker.core.authentication.inter_node import LinkSettings, to_brokers, to_controllers
from kavka_broker.core.authentication.settings import is_read, sasl_of
from kavka_broker.core.authentication.tls import tls_of
from kavka_broker.core.authentication.token_claims import TokenJudge
from kavka_broker.core.authorization.settings import settings_of
from kavka_broker.core.config.broker import BrokerConfig
from kavka_broker.core.config.definition import ConfigError
from kavka_broker.core.config.listeners import Listener as Address
from kavka_broker.core.config.unserved_configs import check_promises, check_secured, without_effect
from kavka_broker.core.quota.rate import SampleWindow
from kavka_broker.dispatch.dispatcher import Dispatcher
from kavka_broker.interfaces import Clock
from kavka_broker.logs import get
from kavka_broker.loop.slices import Work
from kavka_broker.loop.timers import Timers
from kavka_broker.loop.turns import Turns
from kavka_broker.net.acceptor import Acceptor, Admission, SocketAcceptor
from kavka_broker.net.connection_quotas import ConnectionQuotas
from kavka_broker.net.limits import Limits
from kavka_broker.net.listener import Listener
from kavka_broker.net.outbound_login import Introduction
from kavka_broker.net.request_memory import RequestMemory
from kavka_broker.net.tls import Tls, TlsError
from kavka_broker.quotas.client_quotas import OfEntities
from kavka_broker.runtime.connection_limits import Bounding

log = get("runtime")


#: How listeners speak TLS, by name; None for those that do not.
Contexts = Mapping[str, Tls | None]


class StartError(Exception):
    """The broker cannot start as it is configured or as its directories are; the message says what to do."""


class Addresses:
    """Listeners of one node. They are bound early, so that the ports are known, and serve when all else stands."""

    def __init__(
        self,
        config: BrokerConfig,
        clock: Clock,
        timers: Timers,
        acceptor: Callable[[Admission], Acceptor] = SocketAcceptor,
        turns: Turns | None = None,
    ) -> None:
        self._config = config
        self._clock = clock
        self._timers = timers
        self._acceptor = acceptor
        self.turns = turns or Turns()
        # As in Apache Kafka connections of controllers are counted apart, and bound by the configuration file.
        window = SampleWindow(config["quota.window.num"], config["quota.window.size.seconds"] * 1000)
        protected = config.listeners.inter_broker_name
        self._bounding_brokers = Bounding(ConnectionQuotas(protected=protected, window=window), timers)
        self._bounding_controllers = Bounding(ConnectionQuotas(window=window), timers)
        self.of_brokers: list[Listener] = []
        self.of_controllers: list[Listener] = []
        self.advertised: tuple[Address, ...] = ()
        self.controllers: tuple[Address, ...] = ()

    def __iter__(self) -> Iterator[Listener]:
        yield from self.of_brokers
        yield from self.of_controllers

    @property
    def judges(self) -> list[TokenJudge]:
        """Those who judge tokens for listeners."""
        asked = (listener.sasl for listener in self if listener.sasl is not None)
        return [sasl.tokens for sasl in asked if sasl.tokens is not None]

    async def bind(self) -> None:
        """Take every address of this node's roles. Raises StartError."""
        roles = self._config.roles
        if "controller" in roles:
            bounding = self._bounding_controllers
            ports = await self._bind_all(self._config.listeners.of_controllers, self.of_controllers, bounding)
            self.controllers = tuple(
                replace(listener, port=listener.port or ports[listener.name])
                for listener in self._config.listeners.advertised_controllers
            )
        if "broker" in roles:
            ports = await self._bind_all(self._config.listeners.of_brokers, self.of_brokers, self._bounding_brokers)
            self.advertised = tuple(
                replace(listener, port=listener.port or ports[listener.name])
                for listener in self._config.listeners.advertised
            )

    async def _bind_all(
        self, addresses: tuple[Address, ...], listeners: list[Listener], bounding: Bounding
    ) -> dict[str, int]:
        ports, limits = {}, limits_of(self._config, self.turns)
        bounding.follow(self._config)
        for address in addresses:
            sasl = sasl_of(self._config, address)
            quotas, acceptor = bounding.quotas, self._acceptor
            tls = speaking(self._config, address)
            listener = Listener(address.name, None, limits, self._clock, self._timers, quotas, acceptor, sasl, tls)
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

    def contexts(self) -> Contexts:
        """How each listener speaks TLS by the files of now; reads them. Raises StartError."""
        return {address.name: speaking(self._config, address) for address in self._config.listeners.opened}

    def speak(self, contexts: Contexts) -> None:
        """Speak TLS in these ways from the next connection on."""
        for listener in self:
            listener.tls = contexts[listener.name]

    def limit_brokers(self, config: BrokerConfig) -> None:
        """Take over the bound of connections of the brokers' listeners."""
        self._bounding_brokers.follow(config)

    def limit_addresses(self, limits: OfEntities, observed: OfEntities) -> None:
        """Take over the rates at which addresses may connect to the brokers' listeners, and those only observed."""
        self._bounding_brokers.limit_addresses(limits, observed)

    def sending_away(self, reason: Callable[[], str | None]) -> Work[None]:
        """Close the connections to the brokers' listeners that there are now, also of those who wait for an answer, for
        as long as there is a reason.
        """
        for listener in self.of_brokers:
            for connection in list(listener.connections):
                if (why := reason()) is None:
                    return
                if connection in listener.connections:
                    connection.close(why)
                yield

    async def close_brokers(self) -> None:
        for listener in self.of_brokers:
            await listener.close()

    async def close(self) -> None:
        """Give every address up; those of brokers may be closed already."""
        self._bounding_brokers.close()
        self._bounding_controllers.close()
        for listener in self:
            await listener.close()


def speaking(config: BrokerConfig, address: Address) -> Tls | None:
    """How a listener speaks TLS; None where it does not. Raises ConfigError, StartError."""
    settings = tls_of(config, address)
    try:
        return None if settings is None else Tls.of(settings, has_sasl=address.security_protocol == "SASL_SSL")
    except TlsError as error:
        raise StartError(str(error)) from None


class Links(NamedTuple):
    """How a node speaks to the others, by what they are to it."""

    controllers: LinkSettings
    brokers: LinkSettings


def links_of(config: BrokerConfig) -> Links:
    """How a node speaks to the others; a controller alone asks brokers only to keep its audit trail. Raises
    ConfigError.
    """
    asks_brokers = "broker" in config.roles or config["kavka.audit.key.file"]
    return Links(to_controllers(config), to_brokers(config) if asks_brokers else LinkSettings())


def introduction_of(link: LinkSettings) -> Introduction:
    """How a node makes itself known over a link. Raises StartError."""
    try:
        return Introduction.of(link)
    except TlsError as error:
        raise StartError(str(error)) from None


def check(config: BrokerConfig) -> None:
    """Check the configuration for what this version does not support. Raises StartError."""
    try:
        check_promises({name: text for name, text in config.given.items() if not is_read(name)})
        links = links_of(config)
        spoken = [
            *(address.security_protocol for address in config.listeners.opened),
            *(link.protocol for link in links),
        ]
        # A controller may have the keys of the brokers' listeners, so that all nodes share one text.
        check_secured(config.given, spoken if "broker" in config.roles else config.listeners.protocols.values())
        settings_of(config.given)
        for address in config.listeners.opened:
            sasl_of(config, address)
            speaking(config, address)
        for link in links:
            introduction_of(link)
    except ConfigError as error:
        raise StartError(str(error)) from None
    for name in config.unknown:
        log.warning("config.unknown", key=name)
    for name in without_effect(name for name in config.given if not is_read(name)):
        log.warning("config.unserved", key=name)


def limits_of(config: BrokerConfig, turns: Turns) -> Limits:
    return Limits(
        request_bytes_max=config["socket.request.max.bytes"],
        idle_ms_max=config["connections.max.idle.ms"],
        login_ms_max=config["kavka.login.timeout.ms"],
        memory=RequestMemory(config["queued.max.request.bytes"]),
        turns=turns,
    )
