"""Listeners as `server.properties` writes them: NAME://HOST:PORT, with a map from names to security protocols.

An empty host means all interfaces. The name of a listener is not its protocol: `CONTROLLER://:9093` is PLAINTEXT if
`listener.security.protocol.map` says so.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from kavka_broker.core.config.definition import ConfigError

#: Security protocols by the numbers that registration records have for them.
SECURITY_PROTOCOLS: Final = {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}


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
