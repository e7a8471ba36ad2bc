"""The login of one connection over SASL: which requests may come, in which order, and what becomes of a token.

As Apache Kafka's SaslServerAuthenticator does it: ApiVersions may come first, once, and once more where its first
version was refused; then SaslHandshake names a mechanism; then tokens come, in SaslAuthenticate requests (KIP-152),
or bare where the handshake was of version 0. Anything else closes the connection. PLAIN is RFC 4616, and its refusals
are in the words of PlainSaslServer; SCRAM takes two tokens (`scram.py`), OAUTHBEARER
one (`oauthbearer.py`). A login that does not hold for good is renewed
by another one on the same connection (`session.py`).
"""

from collections.abc import Callable, Mapping
from enum import Enum
from hmac import compare_digest
from typing import Final, NamedTuple

from kavka_broker.core.authentication import oauthbearer, scram
from kavka_broker.core.authentication.auth_metrics import Authentications
from kavka_broker.core.authentication.sasl import SaslSettings
from kavka_broker.core.authentication.session import Session
from kavka_broker.core.client_names import NAME_CHARACTERS_MAX
from kavka_broker.protocol.errors import BrokerError, ErrorCode, ProtocolViolation

API_VERSIONS: Final = 18
SASL_HANDSHAKE: Final = 17
SASL_AUTHENTICATE: Final = 36
PLAIN: Final = "PLAIN"
#: Mechanisms by which a node may log in at another; its token would have to be fetched from a third party.
OF_NODES: Final = (PLAIN, *scram.MECHANISMS)
SERVED_MECHANISMS: Final = (*OF_NODES, oauthbearer.MECHANISM)


class Stage(Enum):
    """What a login waits for."""

    VERSIONS = "ApiVersions or SaslHandshake"
    HANDSHAKE = "SaslHandshake"
    PROOF = "SaslAuthenticate"
    BARE_PROOF = "a token"
    OTHER_MECHANISM = "anything, which is refused"
    FAILED = "nothing more"


#: The APIs that may be asked for at each stage, before the client is known.
ALLOWED: Final = {
    Stage.VERSIONS: (API_VERSIONS, SASL_HANDSHAKE),
    Stage.HANDSHAKE: (SASL_HANDSHAKE,),
    Stage.PROOF: (SASL_AUTHENTICATE,),
    Stage.BARE_PROOF: (),
    Stage.OTHER_MECHANISM: (),
    Stage.FAILED: (),
}


class Proof(NamedTuple):
    """What has become of a token: the mechanism's answer, and the user once it is proved."""

    answer: bytes
    user: str | None
    is_by_token: bool = False  # by a delegation token


class Login:
    """The login of a connection that is not authenticated yet, or one that renews what `former` proved there. It adds
    what becomes of it to `counts`, once.
    """

    __slots__ = ("_counts", "_exchange", "_former", "_has_refused", "_is_told", "_mechanism", "_stage", "settings")

    def __init__(self, settings: SaslSettings, counts: Authentications, former: Session | None = None) -> None:
        self.settings = settings
        self._counts = counts
        self._former = former
        self._is_told = False
        self._stage = Stage.VERSIONS
        self._has_refused = False  # a version of ApiVersions
        self._mechanism = ""
        self._exchange: scram.Exchange | oauthbearer.Exchange | None = None  # once it has begun; not of PLAIN

    @property
    def takes_bare_tokens(self) -> bool:
        """Whether the next frame is a token without a request around it, or is refused like one, whatever it is."""
        return self._stage is Stage.BARE_PROOF or self._stage is Stage.OTHER_MECHANISM

    def check(self, api_key: int) -> None:
        """Check that this request may come now. Raises ProtocolViolation where the connection is closed at once,
        ILLEGAL_SASL_STATE where an answer says so before that: behind the handshake, as in Apache Kafka.
        """
        if api_key in ALLOWED[self._stage]:
            if api_key == API_VERSIONS:
                self._stage = Stage.HANDSHAKE
            return
        words = f"API key {api_key} before the client is known: {self._stage.value} is expected"
        is_told = self._stage is Stage.PROOF
        self.fail()
        raise BrokerError(ErrorCode.ILLEGAL_SASL_STATE, words) if is_told else ProtocolViolation(words)

    def refuse_versions(self) -> None:
        """Let the client ask for ApiVersions again, once: it is told that it has asked in a way that is not served."""
        if self._stage is Stage.HANDSHAKE and not self._has_refused:
            self._stage, self._has_refused = Stage.VERSIONS, True

    @property
    def is_first(self) -> bool:
        """Whether nothing is known of the client yet; otherwise it renews a login."""
        return self._former is None

    def choose(self, mechanism: str, version: int) -> None:
        """Take up a mechanism. Raises UNSUPPORTED_SASL_MECHANISM, after which the connection is closed; in a renewal
        ProtocolViolation, as Apache Kafka closes it without an answer there.
        """
        self._mechanism, former = mechanism, self._former
        if mechanism not in self.settings.mechanisms:
            self.fail()
            words = f"{mechanism!r} is not served here"
            raise (
                BrokerError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, words) if former is None else ProtocolViolation(words)
            )
        if former is not None and mechanism != former.mechanism:
            self._stage = Stage.OTHER_MECHANISM
        else:
            self._stage = Stage.PROOF if version else Stage.BARE_PROOF

    @property
    def refusal(self) -> str:
        """Why a token was refused that the client is told no reason for; empty where there was none."""
        return self._exchange.reason if isinstance(self._exchange, oauthbearer.Exchange) else ""

    def authenticate(
        self,
        token: bytes,
        find: scram.Find,
        draw: Callable[[], str],
        version: int = 0,
        now_ms: int = 0,
        find_token: scram.FindToken = scram.no_tokens,
    ) -> Proof:
        """What a token proves. Raises SASL_AUTHENTICATION_FAILED, after which the connection is closed.

        `find` gives what is kept of a user's password for SCRAM, `find_token` of a delegation token, `draw` a nonce;
        `version` is that of the request around the token, 0 for a bare one; `now_ms` is the time since 1970.
        """
        stage, self._stage = self._stage, Stage.FAILED
        self._is_told = self._is_told or version > 0
        try:
            self._check_mechanism(stage)
            proof = self._prove(token, find, find_token, draw, now_ms)
            self._check_user(proof.user)
        except BrokerError as error:
            self._count_failure()
            if self._former is None:
                raise
            words = (error.message or "").replace("during authentication", "during re-authentication")
            raise BrokerError(error.code, words) from None
        if proof.user is None:
            self._stage = stage  # one more is to come
        else:
            self._count_success()
        return proof

    def session_of(self, user: str, monotonic_ms: float, now_ms: int) -> Session | None:
        """The session of the user that has been proved now; None where it lasts as long as the connection. One that a
        token has begun ends with it at the latest.
        """
        lifetime_ms, former = self.settings.session_ms_max.get(self._mechanism, 0), self._former
        if self._exchange is not None and self._exchange.expires_ms is not None:
            rest_ms = max(0, self._exchange.expires_ms - now_ms)
            lifetime_ms = min(lifetime_ms, rest_ms) if lifetime_ms > 0 else rest_ms
        elif lifetime_ms <= 0:
            return None
        renewed_ms = None if former is None else former.renewed_ms
        ends_ms = monotonic_ms + lifetime_ms
        return Session(self.settings, self._counts, self._mechanism, user, lifetime_ms, ends_ms, renewed_ms)

    @property
    def has_failed(self) -> bool:
        """Whether nothing more is taken: the connection closes, maybe after a delay."""
        return self._stage is Stage.FAILED

    def fail(self) -> None:
        """Take nothing more: what came is no part of a login."""
        if not self.has_failed:
            self._stage = Stage.FAILED
            self._count_failure()

    def _check_mechanism(self, stage: Stage) -> None:
        """Raises SASL_AUTHENTICATION_FAILED where a renewal was begun with another mechanism than the login's."""
        if stage is Stage.OTHER_MECHANISM and self._former is not None:
            raise _failed(
                f"SASL mechanism '{self._mechanism}' requested by client is not supported for re-authentication of "
                f"mechanism '{self._former.mechanism}'"
            )

    def _check_user(self, user: str | None) -> None:
        """Raises SASL_AUTHENTICATION_FAILED for a user whose name is too long to be kept, and where a renewal proves
        another user than the login.
        """
        if user is not None and len(user) > NAME_CHARACTERS_MAX:
            raise _failed(
                f"Authentication failed: the user's name has {len(user)} characters; {NAME_CHARACTERS_MAX} are allowed"
            )
        if user is not None and self._former is not None and user != self._former.user:
            words = "Cannot change principals during re-authentication from"
            raise _failed(f"{words} User.{self._former.user}: User.{user}")

    def _count_failure(self) -> None:
        if self._former is None:
            self._counts.failed += 1
        else:
            self._counts.not_renewed += 1

    def _count_success(self) -> None:
        if self._former is None:
            self._counts.successful += 1
            self._counts.successful_untold += not self._is_told
        else:
            self._counts.renewed += 1

    def _prove(
        self, token: bytes, find: scram.Find, find_token: scram.FindToken, draw: Callable[[], str], now_ms: int
    ) -> Proof:
        """What a token proves by the mechanism that was chosen. Raises SASL_AUTHENTICATION_FAILED."""
        if self._mechanism == PLAIN:
            return Proof(b"", plain_user(token, self.settings.plain_users))
        if self._exchange is None and self._mechanism == oauthbearer.MECHANISM:
            assert self.settings.tokens is not None, "a listener that serves tokens has somebody who judges them"
            self._exchange = oauthbearer.Exchange(self.settings.tokens, now_ms)
        elif self._exchange is None:
            self._exchange = scram.Exchange(scram.MECHANISMS[self._mechanism], find, draw(), find_token)
        answer, user = self._exchange.take(token)
        return Proof(answer, user, isinstance(self._exchange, scram.Exchange) and self._exchange.is_by_token)


def plain_user(token: bytes, users: Mapping[str, str]) -> str:
    """The user of a PLAIN token: an empty or the same authorization id, the user and the password, with NULs between.

    Raises SASL_AUTHENTICATION_FAILED; which part of a pair is wrong is not said.
    """
    try:
        parts = token.decode().split("\0", 3)
    except UnicodeDecodeError:
        raise _failed("Authentication failed: Invalid username or password") from None
    if len(parts) != 3:
        raise _failed(f"Invalid SASL/PLAIN response: expected 3 tokens, got {len(parts)}")
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
