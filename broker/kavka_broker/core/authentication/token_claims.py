"""Whom a token of an authorization server names (KIP-768): a JSON Web Token (RFC 7519) that one of its keys has signed.

- Signed by RS256, PS256, ES256 (or 384, 512) or EdDSA, with the key that its header names, or one of the first where
  it names none. A token without a signature (`none`), by a shared secret, or with extensions that have to be
  understood (`crit`) is refused.
- `exp` and `iat` are required, `exp` and `nbf` hold give or take the clock skew.
- `iss` is the expected issuer, where one is expected; `aud` has one of the expected audiences. A token for an
  audience is refused where none is expected.
- The scopes, in the claim `scope` or another by the configuration, mean nothing to a broker; but like Apache Kafka it
  refuses a token that names one twice, or an empty one.
- The user is the claim `sub`, or another by the configuration, without spaces around it; of 256 characters at most.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, Final, NamedTuple

from kavka_broker.core.authentication.signing_keys import ALGORITHMS, ES, SigningKey, decode
from kavka_broker.core.authentication.strict_json import JsonError, parse_object
from kavka_broker.core.client_names import NAME_CHARACTERS_MAX

TOKEN_BYTES_MAX: Final = 65_536
KEYS_TRIED_MAX: Final = 8
CURVE_KEYS_TRIED_MAX: Final = 4  # of P-256, P-384 and P-521, whose signatures take the longest


class TokenError(Exception):
    """The token names nobody; the message says why, without any of its text."""


class Named(NamedTuple):
    """Whom a token names, and when it expires."""

    user: str
    expires_ms: int


@dataclass(frozen=True, slots=True)
class TokenSettings:
    """What a listener asks of tokens. `issuer` is empty where any will do."""

    keys_url: str
    issuer: str = ""
    audiences: tuple[str, ...] = ()
    skew_seconds: int = 30
    user_claim: str = "sub"
    scope_claim: str = "scope"
    refresh_ms: int = 3_600_000
    retry_ms: int = 100
    retry_ms_max: int = 10_000


@dataclass(slots=True)
class TokenJudge:
    """Judges tokens by keys that others bring up to date. `on_unknown` hears of a token by a key that is not there."""

    settings: TokenSettings
    keys: tuple[SigningKey, ...] = ()
    on_unknown: Callable[[], None] = field(default=lambda: None)
    keys_read_ms: float = 0.0  # when they were read, by the monotonic clock; when reading began where they never were

    def judge(self, token: str, now_ms: int) -> Named:
        """Whom a token names now. Raises TokenError."""
        if len(token) > TOKEN_BYTES_MAX:
            raise TokenError(f"it is longer than {TOKEN_BYTES_MAX} bytes")
        return self.named(self._verified(token), now_ms / 1000)

    def _verified(self, token: str) -> dict[str, Any]:
        """The claims of a token that one of the keys has signed. Raises TokenError."""
        head, _, rest = token.partition(".")
        body, dot, signature = rest.partition(".")
        header, data = _object(head, "header"), decode(signature)
        algorithm, key_id = header.get("alg"), header.get("kid")
        if not isinstance(algorithm, str) or algorithm not in ALGORITHMS:
            raise TokenError(f"it is not signed by {', '.join(ALGORITHMS)}")
        if "crit" in header:
            raise TokenError("it has extensions that have to be understood")
        if not dot or data is None:
            raise TokenError("it has no signature")
        named = [key for key in self.keys if key_id is None or key.key_id == key_id]
        keys = [key for key in named if algorithm in key.algorithms]
        if not named:
            self.on_unknown()
            raise TokenError("it is signed by a key that is not known")
        covered = f"{head}.{body}".encode()
        tried_max = CURVE_KEYS_TRIED_MAX if algorithm in ES else KEYS_TRIED_MAX
        if not any(key.has_signed(algorithm, covered, data) for key in keys[:tried_max]):
            raise TokenError("its signature is wrong")
        return _object(body, "claims")

    def named(self, claims: dict[str, Any], now: float) -> Named:
        """Return whom claims name, at a time in seconds since 1970. Raises TokenError where they do not hold."""
        settings, skew = self.settings, self.settings.skew_seconds
        expires, issued, begins = (_seconds(claims, name) for name in ("exp", "iat", "nbf"))
        if expires is None or issued is None:
            raise TokenError("it does not say when it was issued and when it expires")
        if now - skew >= expires:
            raise TokenError("it has expired")
        if begins is not None and now + skew < begins:
            raise TokenError("it does not hold yet")
        if settings.issuer and claims.get("iss") != settings.issuer:
            raise TokenError("it is of another issuer")
        if not _is_for(claims.get("aud"), settings.audiences):
            raise TokenError("it is for another audience")
        if not _are_scopes(claims.get(settings.scope_claim)):
            raise TokenError(f"its {settings.scope_claim} has an empty scope, or one twice")
        user = claims.get(settings.user_claim)
        if not isinstance(user, str) or not user.strip():
            raise TokenError(f"its {settings.user_claim} names no user")
        if len(user.strip()) > NAME_CHARACTERS_MAX:
            raise TokenError(f"its {settings.user_claim} has more than {NAME_CHARACTERS_MAX} characters")
        return Named(user.strip(), int(expires * 1000))


def _object(text: str, part: str) -> dict[str, Any]:
    data = decode(text)
    try:
        return parse_object(b"" if data is None else data)
    except JsonError as error:
        raise TokenError(f"its {part}: {error}") from None


def _seconds(claims: dict[str, Any], name: str) -> float | None:
    """A time of a token. Raises TokenError where it is none."""
    found = claims.get(name)
    if found is None:
        return None
    if isinstance(found, bool) or not isinstance(found, int | float) or not 0 <= found <= 1e12 or not isfinite(found):
        raise TokenError(f"its {name} is no time")
    return found


def _is_for(audience: object, expected: tuple[str, ...]) -> bool:
    found = [audience] if isinstance(audience, str) else audience
    if found is None:
        return not expected
    return isinstance(found, list) and any(item in expected for item in found)


def _are_scopes(found: object) -> bool:
    """Whether scopes, of which there may be none, are names, each there once."""
    if not isinstance(found, str | list):
        return True
    scopes = [found] if isinstance(found, str) else found
    names = [scope.strip() for scope in scopes if isinstance(scope, str)]
    return len(names) == len(scopes) == len(set(names)) and "" not in names
