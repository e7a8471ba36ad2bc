"""What a node needs to speak to the listeners of other nodes, as Kafka's keys say it; read at the start.

Brokers speak to each other at `inter.broker.listener.name`, and every node to the controllers at the first of
`controller.listener.names`. Where such a listener speaks SASL a node logs in as a client does: by the mechanism of
`sasl.mechanism.inter.broker.protocol` or `sasl.mechanism.controller.protocol`, with the username and the password of
`listener.name.X.MECHANISM.sasl.jaas.config`.
"""

from dataclasses import dataclass, field
from typing import Final

from kavka_broker.core.authentication.login import OF_NODES, PLAIN
from kavka_broker.core.authentication.settings import (
    JAAS,
    PLAIN_MODULE,
    SCRAM_MODULE,
    given_to_listeners,
    options_of,
    sasl_of,
)
from kavka_broker.core.authentication.tls import ENCRYPTED, ClientTlsSettings, client_tls_of
from kavka_broker.core.config.broker import OF_A_LISTENER, BrokerConfig
from kavka_broker.core.config.definition import ConfigError

TO_BROKERS_KEY: Final = "sasl.mechanism.inter.broker.protocol"
TO_CONTROLLERS_KEY: Final = "sasl.mechanism.controller.protocol"


@dataclass(frozen=True, slots=True)
class LoginSettings:
    """With what a node logs in at another."""

    mechanism: str
    user: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class LinkSettings:
    """How a node speaks to a listener of other nodes."""

    protocol: str = "PLAINTEXT"
    tls: ClientTlsSettings | None = None
    login: LoginSettings | None = None


def to_brokers(config: BrokerConfig) -> LinkSettings:
    """How this broker speaks to others. Raises ConfigError."""
    mechanism: str = config[TO_BROKERS_KEY]
    if mechanism not in OF_NODES:
        mechanism = ""
    return _link(config, config.listeners.inter_broker_name, TO_BROKERS_KEY, mechanism, ", ".join(OF_NODES))


def to_controllers(config: BrokerConfig) -> LinkSettings:
    """How this node speaks to controllers. Raises ConfigError.

    SCRAM is refused: controllers agree on a leader before the metadata tells them of any user.
    """
    mechanism = PLAIN if config[TO_CONTROLLERS_KEY] == PLAIN else ""
    served = f"{PLAIN}, for controllers elect a leader before they know the users of SCRAM"
    return _link(config, config.listeners.controller_names[0], TO_CONTROLLERS_KEY, mechanism, served)


def _link(config: BrokerConfig, name: str, key: str, mechanism: str, served: str) -> LinkSettings:
    """How to speak to a listener; `mechanism` is empty where the key names none of those that are served."""
    protocol = config.listeners.protocol_of(name)
    if protocol.startswith("SASL_") and not mechanism:
        raise ConfigError(key, f'"{config.text(key)}" is not served for {name}; write {served}')
    return LinkSettings(
        protocol,
        client_tls_of(config, name) if protocol in ENCRYPTED else None,
        _login(config, name, key, mechanism) if protocol.startswith("SASL_") else None,
    )


def _login(config: BrokerConfig, name: str, key: str, mechanism: str) -> LoginSettings:
    jaas, given = f"{OF_A_LISTENER}{name.lower()}.{mechanism.lower()}{JAAS}", given_to_listeners(config)
    module = PLAIN_MODULE if mechanism == PLAIN else SCRAM_MODULE
    options = options_of(jaas, given, module) if jaas in given else {}
    user, password = options.get("username"), options.get("password")
    if not user or not password:
        words = "is missing" if jaas not in given else "names no username and password"
        wanted = f'{module} required username="NAME" password="PASSWORD";'
        raise ConfigError(jaas, f"{words}, with which this node logs in at {name} of the others; write {wanted}")
    for listener in config.listeners.opened:
        sasl = sasl_of(config, listener) if listener.name == name else None
        if sasl is not None and mechanism not in sasl.mechanisms:
            raise ConfigError(key, f"{name} does not let {mechanism} in; add it to sasl.enabled.mechanisms")
    return LoginSettings(mechanism, user, password)
