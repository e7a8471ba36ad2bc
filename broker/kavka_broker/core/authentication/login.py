"""The login of one connection over SASL: which requests may come, in which order, and what becomes of a token.

As Apache Kafka's SaslServerAuthenticator does it: ApiVersions may come first (there once, here until a version is found
that both know); then SaslHandshake names a mechanism; then tokens come, in SaslAuthenticate requests (KIP-152),
or bare where the handshake was of version 0. Anything else closes the connection. PLAIN is RFC 4616, and its refusals
are in the words of PlainSaslServer; SCRAM takes two tokens (`scram.py`).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from hmac import compare_digest
from typing import Final, NamedTuple

from kavka_broker.core.authentication import scram
from kavka_broker.core.authentication.counts import Authentications
from kavka_broker.protocol.errors import BrokerError, ErrorCode, ProtocolViolation

API_VERSIONS: Final = 18
SASL_HANDSHAKE: Final = 17
SASL_AUTHENTICATE: Final = 36
PLAIN: Final = "PLAIN"
SERVED_MECHANISMS: Final = (PLAIN, *scram.MECHANISMS)


@dataclass(frozen=True, slots=True)
class SaslSettings:
    """What a listener asks of its clients. `plain_users` are passwords by user, which nothing shows."""

    mechanisms: tuple[str, ...]
    plain_users: Mapping[str, str] = field(default_factory=dict, repr=False)
    receive_bytes_max: int = 524_288
    failure_delay_ms: int = 100


class Stage(Enum):
    """What a login waits for."""

    HANDSHAKE = "ApiVersions or SaslHandshake"
    PROOF = "SaslAuthenticate"
    BARE_PROOF = "a token"
    FAILED = "nothing more"


#: The APIs that may be asked for at each stage, before the client is known.
ALLOWED: Final = {
    Stage.HANDSHAKE: (API_VERSIONS, SASL_HANDSHAKE),
    Stage.PROOF: (SASL_AUTHENTICATE,),
    Stage.BARE_PROOF: (),
    Stage.FAILED: (),
}


class Proof(NamedTuple):
    """What has become of a token: the mechanism's answer, and the user once it is proved."""

    answer: bytes
    user: str | None


class Login:
    """The login of a connection that is not authenticated yet. It adds what becomes of it to `counts`, once."""

    __slots__ = ("_counts", "_exchange", "_mechanism", "_stage", "settings")

    def __init__(self, settings: SaslSettings, counts: Authentications) -> None:
        self.settings = settings
        self._counts = counts
        self._stage = Stage.HANDSHAKE
        self._mechanism = ""
        self._exchange: scram.Exchange | None = None  # of SCRAM, once it has begun

    @property
    def takes_bare_tokens(self) -> bool:
        """Whether the next frame is a token without a request around it."""
        return self._stage is Stage.BARE_PROOF

    def check(self, api_key: int) -> None:
        """Check that this request may come now. Raises ProtocolViolation where the connection is closed at once,
        ILLEGAL_SASL_STATE where an answer says so before that: behind the handshake, as in Apache Kafka.
        """
        if api_key in ALLOWED[self._stage]:
            return
        words = f"API key {api_key} before the client is known: {self._stage.value} is expected"
        is_told = self._stage is Stage.PROOF
        self.fail()
        raise BrokerError(ErrorCode.ILLEGAL_SASL_STATE, words) if is_told else ProtocolViolation(words)

    def choose(self, mechanism: str, version: int) -> None:
        """Take up a mechanism. Raises UNSUPPORTED_SASL_MECHANISM, after which the connection is closed."""
        if mechanism not in self.settings.mechanisms:
            self.fail()
            raise BrokerError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, f"{mechanism!r} is not served here")
        self._stage, self._mechanism = Stage.PROOF if version else Stage.BARE_PROOF, mechanism

    def authenticate(self, token: bytes, find: scram.Find, draw: Callable[[], str]) -> Proof:
        """What a token proves. Raises SASL_AUTHENTICATION_FAILED, after which the connection is closed.

        `find` gives what is kept of a user's password for SCRAM, `draw` a nonce.
        """
        stage, self._stage = self._stage, Stage.FAILED
        try:
            proof = self._prove(token, find, draw)
        except BrokerError:
            self._counts.failed += 1
            raise
        if proof.user is None:
            self._stage = stage  # one more is to come
        else:
            self._counts.successful += 1
        return proof

    def fail(self) -> None:
        """Take nothing more: what came is no part of a login."""
        if self._stage is not Stage.FAILED:
            self._stage = Stage.FAILED
            self._counts.failed += 1

    def _prove(self, token: bytes, find: scram.Find, draw: Callable[[], str]) -> Proof:
        """What a token proves by the mechanism that was chosen. Raises SASL_AUTHENTICATION_FAILED."""
        if self._mechanism == PLAIN:
            return Proof(b"", plain_user(token, self.settings.plain_users))
        if self._exchange is None:
            self._exchange = scram.Exchange(scram.MECHANISMS[self._mechanism], find, draw())
        return Proof(*self._exchange.take(token))


def plain_user(token: bytes, users: Mapping[str, str]) -> str:
    """The user of a PLAIN token: an empty or the same authorization id, the user and the password, with NULs between.

    Raises SASL_AUTHENTICATION_FAILED; which part of a pair is wrong is not said.
    """
    try:
        parts = token.decode().split("\0")
    except UnicodeDecodeError:
        parts = []
    if len(parts) != 3:
        raise _failed(
            "Authentication failed during authentication due to invalid credentials with SASL mechanism PLAIN"
        )
    authorization_id, user, password = parts
    if not user:
        raise _failed("Authentication failed: username not specified")
    if not password:
        raise _failed("Authentication failed: password not specified")
    expected = users.get(user)
    is_right = compare_digest(password.encode(), (expected or "").encode())
    if expected is None or not is_right:
        raise _failed("Authentication failed: Invalid username or password")
    if authorization_id not in {"", user}:
        raise _failed("Authentication failed: Client requested an authorization id that is different from username")
    return user


def _failed(words: str) -> BrokerError:
    return BrokerError(ErrorCode.SASL_AUTHENTICATION_FAILED, words)
