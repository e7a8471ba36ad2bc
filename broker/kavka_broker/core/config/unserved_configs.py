"""What a configuration asks for and does not get here.

A key without the mark `served` is known, described and kept, and nothing reads it. Most of those cost a user at most
some speed, so they are only named. A few promise something that a user relies on, above all that not everybody may do
everything: such a promise is refused, at the start as well as while the broker runs.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from kavka_broker.core.authorization.settings import CLASS_KEY, OPEN_KEY, STANDARD, SUPER_USERS_KEY
from kavka_broker.core.config.broker import KEYS, OF_A_LISTENER, listener_key
from kavka_broker.core.config.definition import ConfigError
from kavka_broker.core.config.security_table import SECURITY_KEYS
from kavka_broker.core.config.topic_table import TOPIC_KEYS

#: How clients are known and what is encrypted: keys that are read at the start, for a broker or one of its listeners.
SECURED: Final = (
    "connections.max.reauth.ms",
    "sasl.enabled.mechanisms",
    "sasl.oauthbearer.clock.skew.seconds",
    "sasl.oauthbearer.expected.audience",
    "sasl.oauthbearer.expected.issuer",
    "sasl.oauthbearer.jwks.endpoint.refresh.ms",
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
    "sasl.oauthbearer.jwks.endpoint.url",
    "sasl.oauthbearer.scope.claim.name",
    "sasl.oauthbearer.sub.claim.name",
    "ssl.client.auth",
    "ssl.enabled.protocols",
    "ssl.endpoint.identification.algorithm",
    "ssl.key.password",
    "ssl.keystore.location",
    "ssl.keystore.type",
    "ssl.principal.mapping.rules",
    "ssl.truststore.certificates",
    "ssl.truststore.location",
    "ssl.truststore.type",
)
#: By which mechanism a node logs in at others; not keys of single listeners.
LOGINS_OF_NODES: Final = ("sasl.mechanism.controller.protocol", "sasl.mechanism.inter.broker.protocol")
#: How a node's own tickets and tokens are renewed, by mechanisms that no node logs in with here: they protect nothing.
_RENEWAL: Final = (
    "sasl.kerberos.kinit.cmd",
    "sasl.kerberos.min.time.before.relogin",
    "sasl.kerberos.ticket.renew.jitter",
    "sasl.kerberos.ticket.renew.window.factor",
    "sasl.login.connect.timeout.ms",
    "sasl.login.read.timeout.ms",
    "sasl.login.refresh.buffer.seconds",
    "sasl.login.refresh.min.period.seconds",
    "sasl.login.refresh.window.factor",
    "sasl.login.refresh.window.jitter",
    "sasl.login.retry.backoff.max.ms",
    "sasl.login.retry.backoff.ms",
)
_UNUSED: Final = f"no authorizer runs, every client may do everything; set {CLASS_KEY}, or remove it"
_PLAIN: Final = "this version does not do that of TLS or SASL; remove it"
_JAAS: Final = (
    "is read from listener.name.X.MECHANISM.sasl.jaas.config alone, at the start; move it there, or remove it"
)
_POLICY: Final = "this version asks no policy, so everything would be allowed; remove it"

#: Keys that promise what users rely on, each with what holds instead and what to do.
PROMISES: Final[Mapping[str, str]] = {
    OPEN_KEY: _UNUSED,
    "alter.config.policy.class.name": _POLICY,
    CLASS_KEY: f"this version runs {STANDARD} and no other authorizer; write that name, or remove it",
    "config.providers": "values are taken as they stand and none is fetched; remove it, and write the values out",
    "create.topic.policy.class.name": _POLICY,
    "principal.builder.class": "no class is asked who a client is: its login or certificate says so; remove it",
    "remote.log.storage.system.enable": "there is no remote storage here, its records would be missing; remove it",
    "security.providers": _PLAIN,
    SUPER_USERS_KEY: _UNUSED,
    **{
        name: _PLAIN
        for name, definition in SECURITY_KEYS.items()
        if name.startswith(("sasl.", "ssl.")) and not definition.served and name not in _RENEWAL
    },
    "sasl.jaas.config": _JAAS,
}
#: Values with which an authorizer's keys ask for nothing; these keys are its own, and in no table.
_IDLE: Final = {OPEN_KEY: "true", SUPER_USERS_KEY: ""}
assert KEYS.keys() | _IDLE.keys() >= PROMISES.keys(), "a promise is made by no key"
assert KEYS.keys() >= set(_RENEWAL), "no key renews a login"
assert PROMISES.keys() >= _IDLE.keys(), "an authorizer's key promises nothing"


def empty_promise(name: str, text: str, given: Mapping[str, str]) -> str | None:
    """Say what holds instead where a setting among those given promises what this version does not do; None where it
    promises nothing.
    """
    plain = plain_name(name)
    if plain in _IDLE and given.get(CLASS_KEY):
        return None
    if plain in SECURED and name != plain:
        return "is read when a broker starts; write it into the broker's file"
    return PROMISES[plain] if plain in PROMISES and _asks(plain, text) else None


def check_promises(given: Mapping[str, str]) -> None:
    """Check that no setting promises what this version does not do. Raises ConfigError for the first that does."""
    for name, text in given.items():
        if (problem := empty_promise(name, text, given)) is not None:
            raise ConfigError(name, problem)


def check_secured(given: Mapping[str, str], protocols: Iterable[str]) -> None:
    """Check that what asks for TLS or logins is for a listener that has them. Raises ConfigError for the first that is
    not.
    """
    has = {"SSL": False, "SASL": False}
    for protocol in protocols:
        has = {name: there or name in protocol.split("_") for name, there in has.items()}
    for name, text in given.items():
        plain = plain_name(name)
        kind = "SSL" if plain.startswith("ssl.") else "SASL"
        is_asked = plain == "sasl.jaas.config" or (plain in {*SECURED, *LOGINS_OF_NODES} and _asks(plain, text))
        if is_asked and not has[kind]:
            raise ConfigError(name, f"no listener speaks {kind}; give one such a protocol, or remove it")


def plain_name(name: str) -> str:
    """The config that a key is about: `listener.name.` with a listener and a SASL mechanism may stand before it."""
    if not name.startswith(OF_A_LISTENER):
        return name
    rest = name.removeprefix(OF_A_LISTENER).partition(".")[2]
    return rest if rest in KEYS else rest.partition(".")[2] if rest.partition(".")[2] in KEYS else rest


def without_effect(names: Iterable[str]) -> tuple[str, ...]:
    """Broker configs among these names that no code reads. Of keys for one listener alone, few are read."""
    return tuple(name for name in names if _is_idle(name))


def topic_without_effect(names: Iterable[str]) -> tuple[str, ...]:
    """Topic configs among these names that no code reads."""
    return tuple(name for name in names if name in TOPIC_KEYS and not TOPIC_KEYS[name].served)


def _is_idle(name: str) -> bool:
    if name.startswith(OF_A_LISTENER):
        return listener_key(name) is None
    return name in KEYS and not KEYS[name].served


def _asks(name: str, text: str) -> bool:
    """Whether the key asks for something: its default asks for nothing."""
    if name == CLASS_KEY:
        return text.strip() not in ("", STANDARD)
    if name in _IDLE:
        return text.strip().lower() != _IDLE[name]
    try:
        return bool(KEYS[name].parse(text) != KEYS[name].default)
    except ConfigError:
        return True
