"""SaslAuthenticate (36): a token of the mechanism that SaslHandshake has named.

- Only behind a SaslHandshake: otherwise, and where a listener does not speak SASL, ILLEGAL_SASL_STATE.
- A token that proves nothing: SASL_AUTHENTICATION_FAILED after `connection.failed.authentication.delay.ms`, so that
  guessing takes a while, and the connection closes.
- SCRAM takes two tokens, and answers each. What is kept of passwords is that of this broker's image.
- With `tokenauth=true` a login by SCRAM is one by a delegation token (KIP-48): the client is the token's owner, and the
  login ends with the token.
- A token of OAUTHBEARER that names nobody is answered as if it was taken, with an error inside; the next one fails.
- From then on the client is User:NAME; quotas and the fairness of the loop know it by that name.
- Where a login does not hold for good, the answer to its last token says for how many milliseconds it does (KIP-368).
  One that renews another has to prove the same user by the same mechanism.
Versions: flexible from 2; session_lifetime_ms from 1.
"""

from asyncio import Future, get_running_loop
from base64 import urlsafe_b64encode
from collections.abc import Callable
from functools import partial
from typing import Final

from kavka_broker.core.authentication.scram import TokenLogin
from kavka_broker.logs import get
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.sasl_authenticate_request import SaslAuthenticateRequest
from kavka_broker.protocol.messages.sasl_authenticate_response import SaslAuthenticateResponse
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.registry import BOTH, Postponed, api

log = get("net")
NONCE_BYTES: Final = 24


@api(SaslAuthenticateRequest, SaslAuthenticateResponse, versions=(0, 2), on=BOTH)
def sasl_authenticate(
    request: SaslAuthenticateRequest, broker: Broker, client: Client
) -> SaslAuthenticateResponse | Postponed:
    peer = client.peer
    if peer is None or peer.login is None:
        return SaslAuthenticateResponse(
            ErrorCode.ILLEGAL_SASL_STATE, "SaslAuthenticate request received after successful authentication"
        )
    try:
        proof = peer.login.authenticate(
            bytes(request.auth_bytes),
            broker.metadata.credentials.of,
            lambda: nonce(broker.random_bytes),
            client.version,
            broker.clock.now_ms(),
            partial(token_login, broker),
        )
    except BrokerError as error:
        reason = peer.login.refusal or error.message
        log.warning("authentication.failed", listener=client.listener, client=client.address, reason=reason)
        answer = SaslAuthenticateResponse(error.code, error.message)
        if broker.audit is not None:
            broker.audit.logged_in(None, client.address, client.listener)
        client.is_last = "its authentication has failed"
        return later(answer, peer.login.settings.failure_delay_ms, broker)
    if proof.user is None:
        return SaslAuthenticateResponse(auth_bytes=proof.answer)
    session = peer.login.session_of(proof.user, broker.clock.monotonic_ms(), broker.clock.now_ms())
    peer.know(proof.user, session, is_by_token=proof.is_by_token)
    if broker.audit is not None:
        broker.audit.logged_in(proof.user, client.address, client.listener)
    lifetime_ms = 0 if session is None else session.lifetime_ms
    return SaslAuthenticateResponse(auth_bytes=proof.answer, session_lifetime_ms=lifetime_ms)


def token_login(broker: Broker, token_id: str, mechanism: int) -> TokenLogin | None:
    """Return how a client logs in by a delegation token now; None where that lets nobody in."""
    token, secrets = broker.metadata.tokens.of(token_id), broker.token_secrets
    return None if secrets is None else secrets.login_by(token, mechanism, broker.clock.now_ms())


def nonce(random_bytes: Callable[[int], bytes]) -> str:
    """A text that no login has had."""
    return urlsafe_b64encode(random_bytes(NONCE_BYTES)).decode()


def later(answer: SaslAuthenticateResponse, delay_ms: int, broker: Broker) -> Postponed:
    """The answer, after a while."""
    until: Future[None] = get_running_loop().create_future()

    def end() -> None:
        if not until.done():  # the client may have left
            until.set_result(None)

    broker.timers.after(delay_ms, end)
    return Postponed(until, lambda: answer)
