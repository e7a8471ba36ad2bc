"""The secrets of delegation tokens (KIP-48): all that a client needs to log in by a token, and nobody else can make.

The secret of a token is an HMAC of its id by `delegation.token.secret.key`, which all nodes share: no secret stands in
the metadata. Its base64 is the password of a login by SCRAM whose user is the token's id, with the extension
`tokenauth=true`; the user behind it is the token's owner. What SCRAM keeps of that password is worked out at the first
login by a token, and kept. The login ends with the token at the latest.
"""

from base64 import b64encode
from collections.abc import Collection, Iterable
from hmac import digest
from typing import Final

from kavka_broker.core.authentication.scram import (
    ITERATIONS_MIN,
    MECHANISMS,
    Credential,
    TokenLogin,
    credential_of,
    salted,
)
from kavka_broker.core.metadata.image.delegation_tokens import DelegationToken

HASH: Final = "sha512"
SALT_BYTES: Final = 16
CREDENTIALS_KEPT_MAX: Final = 10_000
"""Credentials of tokens that are kept; each takes the loop 1.3 to 2.3 ms to work out."""
_BY_NUMBER: Final = {mechanism.number: mechanism for mechanism in MECHANISMS.values()}


class TokenSecrets:
    """The secrets of tokens by their ids, and the ids by the secrets."""

    def __init__(self, key: str) -> None:
        assert key, "without a key everybody could make secrets"
        self._key = key.encode()
        self._secrets: dict[str, bytes] = {}
        self._ids: dict[bytes, str] = {}
        self._credentials: dict[tuple[str, int], Credential] = {}

    def of(self, token_id: str) -> bytes:
        """The secret of a token."""
        return digest(self._key, token_id.encode(), HASH)

    def id_of(self, secret: bytes) -> str | None:
        """The id of the token with this secret, where it is among those that were learned."""
        return self._ids.get(secret)

    def to_learn(self, token_ids: Collection[str]) -> list[str]:
        """The tokens that are not learned yet, of all that there are. Those that are gone are forgotten."""
        for token_id in [known for known in self._secrets if known not in token_ids]:
            del self._ids[self._secrets.pop(token_id)]
        return [token_id for token_id in token_ids if token_id not in self._secrets]

    def learn(self, token_ids: Iterable[str]) -> None:
        """Know these tokens by their secrets."""
        for token_id in token_ids:
            secret = self._secrets[token_id] = self.of(token_id)
            self._ids[secret] = token_id

    def login_by(self, token: DelegationToken | None, mechanism: int, now_ms: int) -> TokenLogin | None:
        """Return how a client logs in by a token; None where that lets nobody in."""
        if token is None or token.is_over(now_ms):
            return None
        user = token.owner.partition(":")[2]
        return TokenLogin(self._credential_of(token.token_id, mechanism), user, token.ends_ms)

    def _credential_of(self, token_id: str, number: int) -> Credential:
        found = self._credentials.get((token_id, number))
        if found is None:
            if len(self._credentials) >= CREDENTIALS_KEPT_MAX:
                self._credentials.clear()
            found = self._credentials[token_id, number] = self._worked_out(token_id, number)
        return found

    def _worked_out(self, token_id: str, number: int) -> Credential:
        mechanism, password = _BY_NUMBER[number], b64encode(self.of(token_id)).decode()
        salt = digest(self._key, f"salt of {token_id}".encode(), HASH)[:SALT_BYTES]
        return credential_of(mechanism, salted(mechanism, password, salt, ITERATIONS_MIN), salt, ITERATIONS_MIN)
