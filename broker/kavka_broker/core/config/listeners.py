"""Listeners as `server.properties` writes them: NAME://HOST:PORT, with a map from names to security protocols.

`Listeners` are those of one node: where it listens, what it advertises to clients, brokers and controllers.

An empty host means all interfaces. The name of a listener is not its protocol: `CONTROLLER://:9093` is PLAINTEXT if
`listener.security.protocol.map` says so.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from kavka_broker.core.config.definition import ConfigError

#: Security protocols by the numbers that registration records have for them.
SECURITY_PROTOCOLS: Final = {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}
#: Hosts to listen on, and none to connect to.
EVERYWHERE: Final = ("", "0.0.0.0")


@dataclass(frozen=True, slots=True)
class Listener:
    """One address under one name. `host` is "" for all interfaces, `port` 0 for any free one."""

    name: str
    host: str
    port: int
    security_protocol: str = "PLAINTEXT"

    def __post_init__(self) -> None:
        assert 0 <= self.port < 65536, self.port
        assert self.security_protocol in SECURITY_PROTOCOLS, self.security_protocol

    @property
    def protocol_id(self) -> int:
        """The number of the security protocol."""
        return SECURITY_PROTOCOLS[self.security_protocol]

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.name}://{host}:{self.port}"


@dataclass(frozen=True)
class Listeners:
    """The listeners of one node. Each property raises ConfigError where its text cannot be read."""

    opened_texts: tuple[str, ...]
    advertised_texts: tuple[str, ...] | None
    controller_names: tuple[str, ...]
    inter_broker_name: str
    protocols: Mapping[str, str]
    """The security protocols by the names of listeners, of this node and of others."""
    bounds: Mapping[str, Mapping[str, int]]
    """The values of `listener.name.X.KEY`, by key and listener: most configurations set none of them."""

    @cached_property
    def opened(self) -> tuple[Listener, ...]:
        """Every listener that this process opens."""
        return parse_listeners("listeners", self.opened_texts, self.protocols)

    @cached_property
    def of_brokers(self) -> tuple[Listener, ...]:
        """The listeners for clients and other brokers."""
        return tuple(listener for listener in self.opened if listener.name not in self.controller_names)

    @cached_property
    def of_controllers(self) -> tuple[Listener, ...]:
        """The controller listeners that this process opens, if it is a controller."""
        return tuple(listener for listener in self.opened if listener.name in self.controller_names)

    @cached_property
    def advertised(self) -> tuple[Listener, ...]:
        """Listeners that clients are told, by name. An unset one is the listener itself."""
        listeners = self.of_brokers if self._advertised is None else self._advertised
        return tuple(listener for listener in listeners if listener.name not in self.controller_names)

    @cached_property
    def advertised_controllers(self) -> tuple[Listener, ...]:
        """Listeners where other nodes find this controller: as advertised, otherwise where it listens."""
        advertised = {listener.name: listener for listener in self._advertised or ()}
        return tuple(
            advertised.get(listener.name)
            or replace(listener, host="localhost" if listener.host in EVERYWHERE else listener.host)
            for listener in self.of_controllers
        )

    @cached_property
    def _advertised(self) -> tuple[Listener, ...] | None:
        given = self.advertised_texts
        return parse_listeners("advertised.listeners", given, self.protocols) if given else None

    def protocol_of(self, name: str) -> str:
        """The security protocol of a listener, of this node or of others. Raises ConfigError where it is not known."""
        if name not in self.protocols:
            raise ConfigError("listener.security.protocol.map", f"does not tell the protocol of {name}; add {name}:SSL")
        return self.protocols[name]

    def check(self, roles: Sequence[str]) -> None:
        """Check that a node of these roles can listen and be found. Raises ConfigError."""
        if not roles:
            raise ConfigError("process.roles", "is empty; write broker, controller or broker,controller")
        names = [listener.name for listener in self.opened]
        if not names:
            raise ConfigError("listeners", "is empty; write for example PLAINTEXT://:9092,CONTROLLER://:9093")
        for name in self.controller_names:
            if "controller" in roles and name not in names:
                raise ConfigError("controller.listener.names", f"{name} is not among listeners; add {name}://:9093")
        if "broker" in roles:
            self._check_advertised(names)

    def _check_advertised(self, names: Sequence[str]) -> None:
        if not self.of_brokers:
            raise ConfigError("listeners", "has only controller listeners; add one for clients, PLAINTEXT://:9092")
        advertised = {listener.name for listener in self.advertised}
        for name in advertised - set(names):
            raise ConfigError("advertised.listeners", f"{name} is not among listeners; add it there or remove it")
        if self.inter_broker_name not in advertised:
            name = self.inter_broker_name
            raise ConfigError("inter.broker.listener.name", f"{name} is not advertised; choose of {sorted(advertised)}")
        for listener in self._advertised or self.of_brokers:
            if listener.host == "0.0.0.0":
                raise ConfigError("advertised.listeners", f"{listener} is no address to connect to; name the host")


def protocol_map(key: str, items: Iterable[str]) -> dict[str, str]:
    """Parse pairs of listener name and security protocol. Raises ConfigError."""
    protocols: dict[str, str] = {}
    for item in items:
        name, colon, protocol = item.strip().partition(":")
        if not colon or protocol.upper() not in SECURITY_PROTOCOLS:
            known = ", ".join(SECURITY_PROTOCOLS)
            raise ConfigError(key, f'"{item}" is not a mapping; write NAME:PROTOCOL with a protocol of {known}')
        protocols[name.upper()] = protocol.upper()
    return protocols


def parse_listeners(key: str, items: Iterable[str], protocols: Mapping[str, str]) -> tuple[Listener, ...]:
    """Parse the listeners of a list; names and ports are unique in it. Raises ConfigError."""
    listeners = tuple(_parse(key, item, protocols) for item in items)
    names = [listener.name for listener in listeners]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(key, f"listener {name} is named twice; give each its own name")
    return listeners


def _parse(key: str, text: str, protocols: Mapping[str, str]) -> Listener:
    name, separator, address = text.partition("://")
    host, colon, port = address.rpartition(":")
    name = name.upper()
    if not (separator and name and colon and port.isascii() and port.isdigit() and int(port) < 65536):
        raise ConfigError(key, f'"{text}" is not a listener; write NAME://HOST:PORT, for example PLAINTEXT://:9092')
    if name not in protocols:
        raise ConfigError(key, f"{name} has no protocol; add {name}:PLAINTEXT to listener.security.protocol.map")
    return Listener(name, host.strip("[]"), int(port), protocols[name])
