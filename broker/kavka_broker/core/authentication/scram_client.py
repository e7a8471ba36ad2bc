"""The client's side of SCRAM (RFC 5802): a node proves to another that it knows a password, and hears the same of it.

    first() ──> the server's challenge ──> proof() ──> the server's own proof ──> check()

The challenge comes from the other side, which may be anybody, so all of it is bounded before it costs anything.
"""

import re
from base64 import b64decode, b64encode
from hashlib import new
from hmac import compare_digest, digest
from typing import Final

from kavka_broker.core.authentication.scram import (
    ITERATIONS_MAX,
    ITERATIONS_MIN,
    TOKEN_BYTES_MAX,
    Mechanism,
    credential_of,
    salted,
)

_HEADER: Final = "n,,"  # no channel binding, and no other user to act for
_CHALLENGE: Final = re.compile(r"r=(?P<nonce>[!-+\--~]+),s=(?P<salt>[A-Za-z0-9+/=]+),i=(?P<iterations>[0-9]{1,6})")


class LoginError(Exception):
    """The other side does not let this node in, or is not who it should be; the message shows no password."""


class Client:
    """One login. `nonce` is the client's part, drawn for it alone."""

    __slots__ = ("_bare", "_mechanism", "_nonce", "_password", "_signature")

    def __init__(self, mechanism: Mechanism, user: str, password: str, nonce: str) -> None:
        assert len(nonce) >= 16, "a nonce that can be guessed lets a login be played again"
        self._mechanism = mechanism
        self._password = password
        self._nonce = nonce
        self._bare = f"n={user.replace('=', '=3D').replace(',', '=2C')},r={nonce}"
        self._signature = b""  # of the server, as it has to be

    def first(self) -> bytes:
        """The first token."""
        return (_HEADER + self._bare).encode()

    def proof(self, challenge: bytes) -> bytes:
        """The token that answers the challenge, in milliseconds: not for the loop. Raises LoginError."""
        found = _CHALLENGE.fullmatch(_text(challenge))
        if found is None or not found["nonce"].startswith(self._nonce) or found["nonce"] == self._nonce:
            raise LoginError("its challenge is none of SCRAM's, or answers another login")
        iterations = int(found["iterations"])
        if not ITERATIONS_MIN <= iterations <= ITERATIONS_MAX:
            raise LoginError(f"it asks for {iterations} iterations; {ITERATIONS_MIN} to {ITERATIONS_MAX} are served")
        try:
            salt = b64decode(found["salt"], validate=True)
        except ValueError:
            raise LoginError("the salt of its challenge is not base64") from None
        bare = f"c={b64encode(_HEADER.encode()).decode()},r={found['nonce']}"
        covered = f"{self._bare},{found[0]},{bare}".encode()
        return f"{bare},p={self._proven(salt, iterations, covered)}".encode()

    def check(self, verdict: bytes) -> None:
        """Check that the other side knows what is kept of the password. Raises LoginError."""
        wanted = b"v=" + b64encode(self._signature)
        if not self._signature or not compare_digest(verdict, wanted):
            raise LoginError("it does not know this user's password: it is not the node that it claims to be")

    def _proven(self, salt: bytes, iterations: int, covered: bytes) -> str:
        """The proof, in base64; what the server has to prove is kept."""
        name = self._mechanism.hash
        password = salted(self._mechanism, self._password, salt, iterations)
        credential = credential_of(self._mechanism, password, salt, iterations)
        client_key, signature = digest(password, b"Client Key", name), digest(credential.stored_key, covered, name)
        assert new(name, client_key).digest() == credential.stored_key
        self._signature = digest(credential.server_key, covered, name)
        return b64encode(bytes(left ^ right for left, right in zip(client_key, signature, strict=True))).decode()


def _text(token: bytes) -> str:
    try:
        return token.decode() if len(token) <= TOKEN_BYTES_MAX else ""
    except UnicodeDecodeError:
        return ""
