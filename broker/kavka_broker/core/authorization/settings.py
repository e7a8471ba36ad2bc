"""The keys of an authorizer: which class runs, and what it was told beside the rules.

Kafka hands `super.users` and `allow.everyone.if.no.acl.found` to the class as they stand in the file; they are no
configs of a broker.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kavka_broker.core.config.definition import ConfigError

CLASS_KEY: Final = "authorizer.class.name"
SUPER_USERS_KEY: Final = "super.users"
OPEN_KEY: Final = "allow.everyone.if.no.acl.found"
OWN_KEYS: Final = (SUPER_USERS_KEY, OPEN_KEY)
STANDARD: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


@dataclass(frozen=True, slots=True)
class AuthorizerSettings:
    """What an authorizer is told: principals that may do everything, and whether what no rule names is open."""

    super_users: tuple[str, ...]
    allows_unruled: bool


def settings_of(given: Mapping[str, str]) -> AuthorizerSettings:
    """Return the settings in a properties file. Raises ConfigError for what is no principal."""
    users = tuple(user.strip() for user in given.get(SUPER_USERS_KEY, "").split(";") if user.strip())
    for user in users:
        kind, colon, name = user.partition(":")
        if not (kind and colon and name):
            raise ConfigError(SUPER_USERS_KEY, f'"{user}" is no principal; write User:name, with ; between two')
    return AuthorizerSettings(users, given.get(OPEN_KEY, "").strip().lower() == "true")
