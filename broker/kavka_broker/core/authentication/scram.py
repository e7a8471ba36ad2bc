"""SCRAM as the server plays it (RFC 5802, RFC 7677): a client proves that it knows a password, and never sends it.

Two tokens come and two are answered. What is kept of a password is a `Credential`: who has read it can let clients in
that know the password, and tell them that it is the server, but cannot log in by it. Extensions are taken and do
nothing; a mandatory one (m=) and channel bindings are refused, as ScramSaslServer refuses them.
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

_NAME: Final = r"(?:[^=,\0]|=2C|=3D)+"
_MORE: Final = r"(?:,[A-Za-z]+=[^,\0]+)*"
_FIRST: Final = re.compile(
    rf"(?P<header>n,(?:a=(?P<other>{_NAME}))?,)(?P<bare>n=(?P<user>{_NAME}),r=(?P<nonce>[!-+\--~]+){_MORE})"
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


#: Finds what is kept of a user's password, by the mechanism's number; None of one who has none.
Find = Callable[[str, int], Credential | None]


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

    __slots__ = ("_credential", "_find", "_first", "_header", "_mechanism", "_nonce", "_user")

    def __init__(self, mechanism: Mechanism, find: Find, nonce: str) -> None:
        assert len(nonce) >= 16, "a nonce that can be guessed lets a login be played again"
        self._mechanism = mechanism
        self._find = find
        self._nonce = nonce
        self._first = ""  # both first messages, as the proof covers them; empty before
        self._header = self._user = ""
        self._credential = Credential(b"", b"", b"", 0)

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
        self._user, other = (_plain(found[part] or "") for part in ("user", "other"))
        credential = self._find(self._user, self._mechanism.number)
        if credential is None:
            raise self._failed()
        if other not in {"", self._user}:
            words = "Authentication failed: Client requested an authorization id that is different from username"
            raise BrokerError(ErrorCode.SASL_AUTHENTICATION_FAILED, words)
        self._credential, self._header, self._nonce = credential, found["header"], found["nonce"] + self._nonce
        answer = f"r={self._nonce},s={b64encode(credential.salt).decode()},i={credential.iterations}"
        self._first = f"{found['bare']},{answer}"
        return answer.encode()

    def _end(self, text: str) -> tuple[bytes, str]:
        """The server's own proof, and the user."""
        found = _LAST.fullmatch(text)
        header = b64encode(self._header.encode()).decode()
        if found is None or (found["header"], found["nonce"]) != (header, self._nonce):
            raise self._failed()
        covered = f"{self._first},{found['bare']}".encode()
        if not self._proves(found["proof"], covered):
            raise self._failed()
        signature = digest(self._credential.server_key, covered, self._mechanism.hash)
        return b"v=" + b64encode(signature), self._user

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


def _plain(name: str) -> str:
    """A name without the signs that stand for a comma and an equals sign."""
    return name.replace("=2C", ",").replace("=3D", "=")
