"""What the configuration asks of clients of a listener that speaks SASL, as Kafka's keys say it.

`listener.name.X.sasl.enabled.mechanisms` or `sasl.enabled.mechanisms`, and for PLAIN the users with their passwords in
`listener.name.X.plain.sasl.jaas.config` (PlainLoginModule, one option `user_NAME` each). They are read at the start, as
is how long a login holds, `connections.max.reauth.ms`: for a mechanism of a listener, for a listener, or for all.
SCRAM needs no key: its users are in the metadata. A key that Kafka's configuration has for it names ScramLoginModule.
OAUTHBEARER has its keys in `token_keys.py`.
"""

import re
from dataclasses import replace
from typing import Final

from kavka_broker.core.authentication.jaas import JaasError, parse_jaas
from kavka_broker.core.authentication.login import PLAIN, SERVED_MECHANISMS
from kavka_broker.core.authentication.oauthbearer import MECHANISM as OAUTHBEARER
from kavka_broker.core.authentication.sasl import SaslSettings
from kavka_broker.core.authentication.scram import MECHANISMS as SCRAM
from kavka_broker.core.authentication.token_claims import TokenJudge
from kavka_broker.core.authentication.token_keys import OF_TOKENS, tokens_of
from kavka_broker.core.client_names import NAME_CHARACTERS_MAX
from kavka_broker.core.config.broker import KEYS, OF_A_LISTENER, BrokerConfig
from kavka_broker.core.config.definition import ConfigError
from kavka_broker.core.config.listeners import Listener
from kavka_broker.core.config.unserved_configs import SECURED

MECHANISMS: Final = "sasl.enabled.mechanisms"
PLAIN_MODULE: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_MODULE: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"
BEARER_MODULE: Final = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
USER: Final = "user_"
JAAS: Final = ".sasl.jaas.config"
SESSION: Final = "connections.max.reauth.ms"
_OF_ONE: Final = re.compile(r"listener\.name\.[^.]+\.(.+)")


def is_read(name: str) -> bool:
    """Whether a key of one listener says how its clients are known or what is encrypted, and is read at the start."""
    found = _OF_ONE.fullmatch(name)
    if found is None:
        return False
    mechanism, _, key = found[1].partition(".")
    if mechanism.upper() == OAUTHBEARER and key in OF_TOKENS:
        return True
    is_of_mechanism = f".{key}" == JAAS or key == SESSION
    return found[1] in SECURED or (is_of_mechanism and mechanism.upper() in SERVED_MECHANISMS)


def given_to_listeners(config: BrokerConfig) -> dict[str, str]:
    """Keys of single listeners that are read at the start, in small letters, with their texts."""
    return {name.lower(): text for name, text in config.given.items() if is_read(name)}


def sasl_of(config: BrokerConfig, listener: Listener) -> SaslSettings | None:
    """What a listener asks of its clients; None where it does not speak SASL. Raises ConfigError."""
    if not listener.security_protocol.startswith("SASL_"):
        return None
    key = f"{OF_A_LISTENER}{listener.name.lower()}.{MECHANISMS}"
    given = given_to_listeners(config)
    named = given[key].split(",") if key in given else config["sasl.enabled.mechanisms"]
    mechanisms = tuple(name.strip() for name in named if name.strip())
    for name in mechanisms or ("",):
        if name not in SERVED_MECHANISMS:
            words = f'"{name}" is not served; write {", ".join(SERVED_MECHANISMS)}'
            raise ConfigError(key if key in given else MECHANISMS, words)
    own = f"{OF_A_LISTENER}{listener.name.lower()}."
    for name in SCRAM:
        if (jaas := f"{own}{name.lower()}{JAAS}") in given:
            options_of(jaas, given, SCRAM_MODULE)
    if OAUTHBEARER in mechanisms and (jaas := f"{own}{OAUTHBEARER.lower()}{JAAS}") in given:
        options_of(jaas, given, BEARER_MODULE)
    return SaslSettings(
        mechanisms,
        _plain_users(f"{own}{PLAIN.lower()}{JAAS}", given) if PLAIN in mechanisms else {},
        config["sasl.server.max.receive.size"],
        config["connection.failed.authentication.delay.ms"],
        {name: _session_ms_max(config, own, name, given) for name in mechanisms},
        TokenJudge(tokens_of(config, own, given)) if OAUTHBEARER in mechanisms else None,
    )


def _session_ms_max(config: BrokerConfig, own: str, mechanism: str, given: dict[str, str]) -> int:
    """How long a login by a mechanism holds on a listener; 0 or less for as long as its connection. `own` is what the
    listener's keys begin with. Raises ConfigError.
    """
    for key in (f"{own}{mechanism.lower()}.{SESSION}", f"{own}{SESSION}"):
        if key in given:
            return int(replace(KEYS[SESSION], name=key).parse(given[key]))
    return int(config[SESSION])


def _plain_users(key: str, given: dict[str, str]) -> dict[str, str]:
    """The passwords by user. Raises ConfigError, without any of them in its words."""
    if key not in given:
        raise ConfigError(key, f'is missing; write {PLAIN_MODULE} required user_NAME="PASSWORD" ...;')
    options = options_of(key, given, PLAIN_MODULE)
    users = {name.removeprefix(USER): value for name, value in options.items() if name.startswith(USER)}
    if not users:
        raise ConfigError(key, 'names no user, so nobody could log in; add user_NAME="PASSWORD"')
    if (longest := max(map(len, users))) > NAME_CHARACTERS_MAX:
        raise ConfigError(key, f"names a user by {longest} characters; {NAME_CHARACTERS_MAX} are allowed")
    return users


def options_of(key: str, given: dict[str, str], name: str) -> dict[str, str]:
    """The options of the login module of a key. Raises ConfigError where it is not the one that is served."""
    try:
        module = parse_jaas(given[key])
    except JaasError as error:
        raise ConfigError(key, str(error)) from None
    if module.name != name:
        raise ConfigError(key, f"{module.name} is not served; write {name}")
    return module.options
