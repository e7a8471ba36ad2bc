"""SCRAM as the server plays it (RFC 5802, RFC 7677): a client proves that it knows a password, and never sends it.

Two tokens come and two are answered. What is kept of a password is a `Credential`: who has read it can let clients in
that know the password, and tell them that it is the server, but cannot log in by it. Of extensions `tokenauth=true`
asks for a login by a delegation token, whose id stands in the user's place (KIP-48), and others do nothing, as in
ScramSaslServer: m= is refused before the user's name alone, and behind the nonce it is an extension like others.
Channel bindings are refused.
"""

import re
from base64 import b64decode, b64encode
from collections.abc import Callable
from hashlib import new, pbkdf2_hmac
from hmac import compare_digest, digest
from typing import Final, NamedTuple

from kavka_broker.protocol.errors import BrokerError, ErrorCode

ITERATIONS_MIN: Final = 4096
ITERATIONS_MAX: Final = 16_384
"""The most that Apache Kafka takes, since each client computes them at each login."""

TOKEN_BYTES_MAX: Final = 8 * 1024
"""A longer token is refused unread: this much is read in 3 ms, and it comes before anybody is known."""

EXTENSION: Final = "tokenauth"

_NAME: Final = r"(?:[^=,\0]|=2C|=3D)+"
_MORE: Final = r"(?:,[A-Za-z]+=[^,\0]+)*"
_FIRST: Final = re.compile(
    rf"(?P<header>n,(?:a=(?P<other>{_NAME}))?,)(?P<bare>n=(?P<user>{_NAME}),r=(?P<nonce>[!-+\--~]+)(?P<more>{_MORE}))"
)
_LAST: Final = re.compile(
    rf"(?P<bare>c=(?P<header>[A-Za-z0-9+/=]+),r=(?P<nonce>[!-+\--~]+){_MORE}),p=(?P<proof>[A-Za-z0-9+/=]+)"
)


class Mechanism(NamedTuple):
    """A mechanism: its name, its number in requests and records, and its hash function."""

    name: str
    number: int
    hash: str


SHA_256: Final = Mechanism("SCRAM-SHA-256", 1, "sha256")
SHA_512: Final = Mechanism("SCRAM-SHA-512", 2, "sha512")
MECHANISMS: Final = {mechanism.name: mechanism for mechanism in (SHA_256, SHA_512)}


class Credential(NamedTuple):
    """What is kept of a password."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int


class TokenLogin(NamedTuple):
    """What is kept of a delegation token's secret, the user that a login by it is, and when that ends."""

    credential: Credential
    user: str
    ends_ms: int


#: Finds what is kept of a user's password, by the mechanism's number; None of one who has none.
Find = Callable[[str, int], Credential | None]
#: Finds a delegation token by its id; None where it lets nobody in.
FindToken = Callable[[str, int], TokenLogin | None]


def no_tokens(token_id: str, number: int) -> TokenLogin | None:
    """Find no token: where there are none."""
    del token_id, number
    return None


def salted(mechanism: Mechanism, password: str, salt: bytes, iterations: int) -> bytes:
    """The salted password, in milliseconds: not for the loop."""
    return pbkdf2_hmac(mechanism.hash, password.encode(), salt, iterations)


def credential_of(mechanism: Mechanism, salted_password: bytes, salt: bytes, iterations: int) -> Credential:
    """What is kept of a salted password."""
    client_key = digest(salted_password, b"Client Key", mechanism.hash)
    return Credential(
        salt,
        new(mechanism.hash, client_key).digest(),
        digest(salted_password, b"Server Key", mechanism.hash),
        iterations,
    )


class Exchange:
    """The exchange of one login. `nonce` is the server's part, drawn for it alone."""

    __slots__ = (
        "_credential",
        "_find",
        "_find_token",
        "_first",
        "_header",
        "_mechanism",
        "_nonce",
        "_token_id",
        "_user",
        "expires_ms",
        "is_by_token",
    )

    def __init__(self, mechanism: Mechanism, find: Find, nonce: str, find_token: FindToken = no_tokens) -> None:
        assert len(nonce) >= 16, "a nonce that can be guessed lets a login be played again"
        self._mechanism = mechanism
        self._find = find
        self._find_token = find_token
        self._nonce = nonce
        self._first = ""  # both first messages, as the proof covers them; empty before
        self._header = self._user = self._token_id = ""
        self._credential = Credential(b"", b"", b"", 0)
        self.is_by_token = False  # it is one of a delegation token
        self.expires_ms: int | None = None  # when the token ends by which it is one

    def take(self, token: bytes) -> tuple[bytes, str | None]:
        """The answer to a token, and the user once the client has proved to be it. Raises SASL_AUTHENTICATION_FAILED.

        Which part of a pair is wrong is not said.
        """
        if len(token) > TOKEN_BYTES_MAX:
            raise self._failed()
        try:
            text = token.decode()
        except UnicodeDecodeError:
            raise self._failed() from None
        return self._end(text) if self._first else (self._begin(text), None)

    def _begin(self, text: str) -> bytes:
        """The answer to the client's first message: both nonces, and how the password is salted."""
        found = _FIRST.fullmatch(text)
        if found is None:
            raise self._failed()
        name, other = (_plain(found[part] or "") for part in ("user", "other"))
        self.is_by_token = _asks_for_token(found["more"])
        credential = self._credential_of(name)
        if credential is None:
            raise self._failed()
        if other not in {"", name}:
            words = "Authentication failed: Client requested an authorization id that is different from username"
            raise BrokerError(ErrorCode.SASL_AUTHENTICATION_FAILED, words)
        self._credential, self._header, self._nonce = credential, found["header"], found["nonce"] + self._nonce
        answer = f"r={self._nonce},s={b64encode(credential.salt).decode()},i={credential.iterations}"
        self._first = f"{found['bare']},{answer}"
        return answer.encode()

    def _credential_of(self, name: str) -> Credential | None:
        """What is kept of the password of a user, or of the secret of a token; None where that lets nobody in."""
        if not self.is_by_token:
            self._user = name
            return self._find(name, self._mechanism.number)
        login = self._find_token(name, self._mechanism.number)
        if login is None:
            return None
        self._token_id = name
        self._user, self.expires_ms = login.user, login.ends_ms
        return login.credential

    def _end(self, text: str) -> tuple[bytes, str]:
        """The server's own proof, and the user."""
        found = _LAST.fullmatch(text)
        header = b64encode(self._header.encode()).decode()
        if found is None or (found["header"], found["nonce"]) != (header, self._nonce):
            raise self._failed()
        covered = f"{self._first},{found['bare']}".encode()
        if not self._proves(found["proof"], covered) or not self._still_holds():
            raise self._failed()
        signature = digest(self._credential.server_key, covered, self._mechanism.hash)
        return b"v=" + b64encode(signature), self._user

    def _still_holds(self) -> bool:
        """Whether the token of a login by one was not taken away since its first message, and is not over."""
        return not self.is_by_token or self._find_token(self._token_id, self._mechanism.number) is not None

    def _proves(self, proof: str, covered: bytes) -> bool:
        """Whether a proof can only have been made by one who knows the password."""
        signature = digest(self._credential.stored_key, covered, self._mechanism.hash)
        try:
            given = b64decode(proof, validate=True)
        except ValueError:
            return False
        if len(given) != len(signature):
            return False
        client_key = bytes(left ^ right for left, right in zip(given, signature, strict=True))
        return compare_digest(new(self._mechanism.hash, client_key).digest(), self._credential.stored_key)

    def _failed(self) -> BrokerError:
        words = "Authentication failed during authentication due to invalid credentials with SASL mechanism"
        return BrokerError(ErrorCode.SASL_AUTHENTICATION_FAILED, f"{words} {self._mechanism.name}")


def _asks_for_token(extensions: str) -> bool:
    """Whether the extensions of a first message ask for a login by a token: once, or each time that it is named."""
    pairs = [pair.partition("=")[::2] for pair in extensions.split(",")]
    asked = {value.lower() for name, value in pairs if name == EXTENSION}
    return asked == {"true"}


def _plain(name: str) -> str:
    """A name without the signs that stand for a comma and an equals sign."""
    return name.replace("=2C", ",").replace("=3D", "=")
