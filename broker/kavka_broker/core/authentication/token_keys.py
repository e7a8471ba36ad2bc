"""What the configuration asks of tokens, as Kafka's keys for OAUTHBEARER say it.

Each may be set for the mechanism of a listener (`listener.name.X.oauthbearer.`), for a listener, or for all. As with
Apache Kafka `sasl.server.callback.handler.class` of the mechanism has to name the class that asks for signatures: its
default takes tokens that nobody has signed, and this broker takes none of those.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final
from urllib.parse import urlsplit

from kavka_broker.core.authentication.token_claims import TokenSettings
from kavka_broker.core.config.broker import KEYS, BrokerConfig
from kavka_broker.core.config.definition import ConfigError

URL: Final = "sasl.oauthbearer.jwks.endpoint.url"
SKEW: Final = "sasl.oauthbearer.clock.skew.seconds"
AUDIENCE: Final = "sasl.oauthbearer.expected.audience"
ISSUER: Final = "sasl.oauthbearer.expected.issuer"
USER_CLAIM: Final = "sasl.oauthbearer.sub.claim.name"
SCOPE_CLAIM: Final = "sasl.oauthbearer.scope.claim.name"
TIMES: Final = (
    "sasl.oauthbearer.jwks.endpoint.refresh.ms",
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
)
HANDLER: Final = ".sasl.server.callback.handler.class"
VALIDATOR: Final = "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"
#: The same under its name of before Kafka 4.
FORMER_VALIDATOR: Final = VALIDATOR.replace("oauthbearer.", "oauthbearer.secured.")
#: Keys that may stand behind `listener.name.X.oauthbearer.`.
OF_TOKENS: Final = frozenset({HANDLER.removeprefix("."), URL, SKEW, AUDIENCE, ISSUER, USER_CLAIM, SCOPE_CLAIM, *TIMES})
SCHEMES: Final = ("file", "http", "https")


def tokens_of(config: BrokerConfig, own: str, given: Mapping[str, str]) -> TokenSettings:
    """What a listener asks of tokens; `own` is what its keys begin with. Raises ConfigError."""

    def value(name: str) -> Any:
        """Raises ConfigError where the closest key's text is no such value."""
        key, definition = _closest(name, own, given), KEYS[name]
        if key is not None:
            return replace(definition, name=key).parse(given[key])
        return definition.parse(config.given[name]) if name in config.given else definition.default

    of_handler = f"{own}oauthbearer{HANDLER}"
    if given.get(of_handler) not in (VALIDATOR, FORMER_VALIDATOR):
        words = "is missing" if of_handler not in given else "names another class"
        raise ConfigError(of_handler, f"{words}; tokens have to be signed: write {VALIDATOR}")
    url, where = value(URL) or "", _closest(URL, own, given) or URL
    if urlsplit(url).scheme not in SCHEMES:
        raise ConfigError(where, f'"{url}" has no scheme of {", ".join(SCHEMES)}; write where the keys of tokens are')
    skew, (user_claim, scope_claim) = value(SKEW), (value(name).strip() for name in (USER_CLAIM, SCOPE_CLAIM))
    refresh_ms, retry_ms, retry_ms_max = map(value, TIMES)
    if skew < 0 or min(refresh_ms, retry_ms, retry_ms_max) <= 0 or not (user_claim and scope_claim):
        raise ConfigError(where, "the keys beside it have a time that is too short, or an empty claim; mend them")
    audiences = tuple(value(AUDIENCE))
    claims = (user_claim, scope_claim)
    return TokenSettings(url, value(ISSUER) or "", audiences, skew, *claims, refresh_ms, retry_ms, retry_ms_max)


def _closest(name: str, own: str, given: Mapping[str, str]) -> str | None:
    """The key of one listener that counts, None where none is set."""
    return next((key for key in (f"{own}oauthbearer.{name}", f"{own}{name}") if key in given), None)
