"""Where clients of a cluster log in, and how, by the settings that its brokers describe."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from kavka_operator.domain.observed import Login

Settings = Mapping[str, str]

LISTENERS, ADVERTISED, PROTOCOLS = "listeners", "advertised.listeners", "listener.security.protocol.map"
CONTROLLERS: Final = "controller.listener.names"
MECHANISMS, MECHANISMS_DEFAULT = "sasl.enabled.mechanisms", "GSSAPI"
CLIENT_AUTH: Final = "ssl.client.auth"
ASKS: Final = {"required", "requested"}
NODES: Final = "NODES"
"""The listener at which the nodes of a cluster with certificates talk to each other, and nobody else."""


def logins_of(settings: Sequence[Settings]) -> dict[str, Login]:
    """The places where clients log in by each mechanism: with TLS where there is any, at each broker that has it."""
    found: dict[str, dict[str, list[str]]] = {}
    for of_broker in settings:
        for name, protocol, address in _client_listeners(of_broker):
            if protocol.startswith("SASL_"):
                for mechanism in _mechanisms(of_broker, name):
                    found.setdefault(mechanism, {}).setdefault(protocol, []).append(address)
    return {mechanism: _best(by_protocol) for mechanism, by_protocol in found.items()}


def _best(by_protocol: Mapping[str, list[str]]) -> Login:
    """The listeners with TLS, if there are any."""
    protocol = max(by_protocol, key=lambda name: name == "SASL_SSL")
    return Login(protocol, tuple(dict.fromkeys(by_protocol[protocol])))


def takes_certificates(settings: Settings) -> bool:
    """Whether a listener for clients asks for their certificates, and knows them by these."""
    return any(
        protocol == "SSL" and _of_listener(settings, name, CLIENT_AUTH, "none").lower() in ASKS
        for name, protocol, _ in _client_listeners(settings)
    )


def _client_listeners(settings: Settings) -> Iterator[tuple[str, str, str]]:
    """Name, protocol and address of each listener that is not among nodes."""
    protocols = dict(pair.split(":", 1) for pair in _split(settings.get(PROTOCOLS, "")) if ":" in pair)
    among_nodes = {NODES, *_split(settings.get(CONTROLLERS, ""))}
    for url in _split(settings.get(ADVERTISED) or settings.get(LISTENERS, "")):
        name, _, address = url.partition("://")
        if name not in among_nodes:
            yield name, protocols.get(name, name), address


def _mechanisms(settings: Settings, listener: str) -> list[str]:
    return _split(_of_listener(settings, listener, MECHANISMS, MECHANISMS_DEFAULT))


def _of_listener(settings: Settings, listener: str, key: str, default: str) -> str:
    """A setting of one listener: its own, otherwise that of all."""
    return settings.get(f"listener.name.{listener.lower()}.{key}") or settings.get(key) or default


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]
