"""SaslAuthenticate (36): a token of the mechanism that SaslHandshake has named.

- Only before the client is known: afterwards, and where a listener does not speak SASL, ILLEGAL_SASL_STATE.
- A token that proves nothing: SASL_AUTHENTICATION_FAILED after `connection.failed.authentication.delay.ms`, so that
  guessing takes a while, and the connection closes.
- SCRAM takes two tokens, and answers each. What is kept of passwords is that of this broker's image.
- From then on the client is User:NAME; quotas and the fairness of the loop know it by that name.
Versions: flexible from 2. Sessions do not end (`connections.max.reauth.ms` is refused): lifetime 0.
"""

from asyncio import Future, get_running_loop
from base64 import urlsafe_b64encode
from collections.abc import Callable
from typing import Final

from kavka_broker.api.broker import Broker, Client
from kavka_broker.api.registry import BOTH, Postponed, api
from kavka_broker.logs import get
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.sasl_authenticate_request import SaslAuthenticateRequest
from kavka_broker.protocol.messages.sasl_authenticate_response import SaslAuthenticateResponse

log = get("net")
NONCE_BYTES: Final = 24


@api(SaslAuthenticateRequest, SaslAuthenticateResponse, versions=(0, 2), on=BOTH)
def sasl_authenticate(
    request: SaslAuthenticateRequest, broker: Broker, client: Client
) -> SaslAuthenticateResponse | Postponed:
    peer = client.peer
    if peer is None or peer.login is None:
        return SaslAuthenticateResponse(ErrorCode.ILLEGAL_SASL_STATE, "this connection is not logging in")
    try:
        proof = peer.login.authenticate(
            bytes(request.auth_bytes), broker.metadata.credentials.of, lambda: nonce(broker.random_bytes)
        )
    except BrokerError as error:
        log.warning("authentication.failed", listener=client.listener, client=client.address, reason=error.message)
        answer = SaslAuthenticateResponse(error.code, error.message)
        if broker.audit is not None:
            broker.audit.logged_in(None, client.address, client.listener)
        client.is_last = "its authentication has failed"
        return later(answer, peer.login.settings.failure_delay_ms, broker)
    if proof.user is not None:
        peer.know(proof.user)
        if broker.audit is not None:
            broker.audit.logged_in(proof.user, client.address, client.listener)
    return SaslAuthenticateResponse(auth_bytes=proof.answer)


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
