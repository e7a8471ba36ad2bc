"""What the configuration asks of a listener that speaks TLS, as Kafka's keys say it; read at the start.

Certificates and keys are PEM files, as `ssl.keystore.type=PEM` and `ssl.truststore.type=PEM` ask for (KIP-651): Python
reads no keystores of Java's. Each key may be set for one listener, with `listener.name.X.` before it.
"""

from dataclasses import dataclass, field
from typing import Any, Final

from kavka_broker.core.authentication.subjects import Rule, RuleError, parse_rules
from kavka_broker.core.config.broker import KEYS, OF_A_LISTENER, BrokerConfig
from kavka_broker.core.config.definition import ConfigError, Secret
from kavka_broker.core.config.listeners import Listener
from kavka_broker.core.config.unserved import SECURED

PEM: Final = "PEM"
PROTOCOLS: Final = ("TLSv1.2", "TLSv1.3")
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


def tls_of(config: BrokerConfig, listener: Listener) -> TlsSettings | None:
    """What a listener needs to speak TLS; None where it does not. Raises ConfigError."""
    if listener.security_protocol not in {"SSL", "SASL_SSL"}:
        return None
    prefix = f"{OF_A_LISTENER}{listener.name.lower()}."
    given = {name.lower(): text for name, text in config.given.items()}
    own = {name: KEYS[name].parse(given[prefix + name]) for name in TLS_KEYS if prefix + name in given}

    def fail(name: str, words: str) -> ConfigError:
        return ConfigError(prefix + name if name in own else name, words)

    keystore: str | None = own.get("ssl.keystore.location", config["ssl.keystore.location"])
    truststore: str | None = own.get("ssl.truststore.location", config["ssl.truststore.location"])
    trusted: Secret | None = own.get("ssl.truststore.certificates", config["ssl.truststore.certificates"])
    client_auth: str = own.get("ssl.client.auth", config["ssl.client.auth"])
    types = {
        "ssl.keystore.type": own.get("ssl.keystore.type", config["ssl.keystore.type"]),
        "ssl.truststore.type": own.get("ssl.truststore.type", config["ssl.truststore.type"]),
    }
    if keystore is None:
        raise fail(
            "ssl.keystore.location", f"is missing; {listener.name} needs a PEM file with its key and certificates"
        )
    needed = ["ssl.keystore.type", *(["ssl.truststore.type"] if truststore or trusted else [])]
    for name in needed:
        if types[name] != PEM:
            raise fail(name, f"{types[name]} is not read here; convert it (openssl pkcs12), and write {PEM}")
    if client_auth != "none" and truststore is None and trusted is None:
        raise fail("ssl.client.auth", f"is {client_auth}, and no client is trusted; name ssl.truststore.location")
    return TlsSettings(
        keystore,
        own.get("ssl.key.password", config["ssl.key.password"]),
        truststore,
        trusted,
        client_auth,
        _protocols(own.get("ssl.enabled.protocols", config["ssl.enabled.protocols"]), fail),
        _rules(own.get("ssl.principal.mapping.rules", config["ssl.principal.mapping.rules"]), fail),
    )


def _protocols(named: tuple[str, ...], fail: Any) -> tuple[str, ...]:
    for name in named or ("",):
        if name not in PROTOCOLS:
            raise fail("ssl.enabled.protocols", f'"{name}" is not served; write of {", ".join(PROTOCOLS)}')
    return tuple(named)


def _rules(text: str, fail: Any) -> tuple[Rule, ...]:
    try:
        return parse_rules(text)
    except RuleError as error:
        raise fail("ssl.principal.mapping.rules", str(error)) from None
