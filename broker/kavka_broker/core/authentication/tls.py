"""What the configuration asks of a listener that speaks TLS, and of a node that speaks to one; read at the start.

Certificates and keys are PEM files, as `ssl.keystore.type=PEM` and `ssl.truststore.type=PEM` ask for (KIP-651): Python
reads no keystores of Java's. Each key may be set for one listener, with `listener.name.X.` before it.
"""

from dataclasses import dataclass, field
from typing import Any, Final

from kavka_broker.core.authentication.principal_mapping import Rule, RuleError, parse_rules
from kavka_broker.core.config.broker import KEYS, OF_A_LISTENER, BrokerConfig
from kavka_broker.core.config.definition import ConfigError, Secret
from kavka_broker.core.config.listeners import Listener
from kavka_broker.core.config.unserved_configs import SECURED

PEM: Final = "PEM"
PROTOCOLS: Final = ("TLSv1.2", "TLSv1.3")
ENCRYPTED: Final = ("SSL", "SASL_SSL")
NAMES_KEY: Final = "ssl.endpoint.identification.algorithm"
TLS_KEYS: Final = tuple(name for name in SECURED if name.startswith("ssl."))


@dataclass(frozen=True, slots=True)
class TlsSettings:
    """What a listener needs to speak TLS, and whom it trusts. `client_auth` is none, requested or required."""

    keystore: str
    key_password: Secret | None = field(repr=False)
    truststore: str | None = None
    trusted: Secret | None = field(default=None, repr=False)  # PEM in the configuration itself
    client_auth: str = "none"
    protocols: tuple[str, ...] = PROTOCOLS
    rules: tuple[Rule, ...] = ()


@dataclass(frozen=True, slots=True)
class ClientTlsSettings:
    """What a node needs to speak TLS to a listener of other nodes. Without a truststore it trusts the authorities of
    its system. `keystore` is shown to a listener that asks for a certificate.
    """

    truststore: str | None
    trusted: Secret | None = field(repr=False)
    keystore: str | None
    key_password: Secret | None = field(repr=False)
    protocols: tuple[str, ...]
    checks_names: bool


class Keys:
    """The keys of one listener for TLS: its own, or those of the whole node."""

    def __init__(self, config: BrokerConfig, listener: str) -> None:
        self._config = config
        self._prefix = f"{OF_A_LISTENER}{listener.lower()}."
        given = {name.lower(): text for name, text in config.given.items()}
        prefixed = ((name, self._prefix + name) for name in TLS_KEYS)
        self._own = {name: KEYS[name].parse(given[own]) for name, own in prefixed if own in given}

    def __getitem__(self, name: str) -> Any:
        return self._own[name] if name in self._own else self._config[name]  # type: ignore[call-overload]

    def error(self, name: str, words: str) -> ConfigError:
        """An error that names the key as it was written."""
        return ConfigError(self._prefix + name if name in self._own else name, words)

    def check_store(self, kind: str) -> None:
        """Check that `ssl.keystore.type` or `ssl.truststore.type` is PEM. Raises ConfigError."""
        if (found := self[kind]) != PEM:
            raise self.error(kind, f"{found} is not read here; convert it (openssl pkcs12), and write {PEM}")

    @property
    def trusts(self) -> bool:
        """Whether a truststore is named."""
        return bool(self["ssl.truststore.location"] or self["ssl.truststore.certificates"])


def tls_of(config: BrokerConfig, listener: Listener) -> TlsSettings | None:
    """What a listener needs to speak TLS; None where it does not. Raises ConfigError."""
    if listener.security_protocol not in ENCRYPTED:
        return None
    keys = Keys(config, listener.name)
    keystore: str | None = keys["ssl.keystore.location"]
    client_auth: str = keys["ssl.client.auth"]
    if keystore is None:
        words = f"is missing; {listener.name} needs a PEM file with its key and certificates"
        raise keys.error("ssl.keystore.location", words)
    keys.check_store("ssl.keystore.type")
    if keys.trusts:
        keys.check_store("ssl.truststore.type")
    if client_auth != "none" and not keys.trusts:
        raise keys.error("ssl.client.auth", f"is {client_auth}, and no client is trusted; name ssl.truststore.location")
    return TlsSettings(
        keystore,
        keys["ssl.key.password"],
        keys["ssl.truststore.location"],
        keys["ssl.truststore.certificates"],
        client_auth,
        _protocols(keys),
        _rules(keys),
    )


def client_tls_of(config: BrokerConfig, listener: str) -> ClientTlsSettings:
    """What a node needs to speak TLS to a listener of other nodes, by its name. Raises ConfigError."""
    keys = Keys(config, listener)
    if keys.trusts:
        keys.check_store("ssl.truststore.type")
    if keys["ssl.keystore.location"] is not None:
        keys.check_store("ssl.keystore.type")
    algorithm: str = keys[NAMES_KEY]
    if algorithm.lower() not in {"", "https"}:
        raise keys.error(NAMES_KEY, f'"{algorithm}" is not served; write https, or nothing so that names do not count')
    return ClientTlsSettings(
        keys["ssl.truststore.location"],
        keys["ssl.truststore.certificates"],
        keys["ssl.keystore.location"],
        keys["ssl.key.password"],
        _protocols(keys),
        checks_names=bool(algorithm),
    )


def _protocols(keys: Keys) -> tuple[str, ...]:
    named: tuple[str, ...] = keys["ssl.enabled.protocols"]
    for name in named or ("",):
        if name not in PROTOCOLS:
            raise keys.error("ssl.enabled.protocols", f'"{name}" is not served; write of {", ".join(PROTOCOLS)}')
    return tuple(named)


def _rules(keys: Keys) -> tuple[Rule, ...]:
    try:
        return parse_rules(keys["ssl.principal.mapping.rules"])
    except RuleError as error:
        raise keys.error("ssl.principal.mapping.rules", str(error)) from None
