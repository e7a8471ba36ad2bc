"""SaslHandshake (17): the mechanism by which a client will say who it is.

- Only before it is known, or to renew a login that does not hold for good (`core/authentication/session.py`), on a
  listener that speaks SASL: otherwise ILLEGAL_SASL_STATE.
- A mechanism that is not served: UNSUPPORTED_SASL_MECHANISM with those that are, and the connection closes. In a
  renewal it closes without an answer. Another mechanism than the login's is taken there, and what follows is refused.
- After version 0 tokens come bare, without a request around them.
Versions: never flexible.
"""

from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.sasl_handshake_request import SaslHandshakeRequest
from kavka_broker.protocol.messages.sasl_handshake_response import SaslHandshakeResponse
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.registry import BOTH, api


@api(SaslHandshakeRequest, SaslHandshakeResponse, versions=(0, 1), on=BOTH)
def sasl_handshake(request: SaslHandshakeRequest, broker: Broker, client: Client) -> SaslHandshakeResponse:
    del broker
    login = None if client.peer is None else client.peer.login
    if login is None:
        return SaslHandshakeResponse(ErrorCode.ILLEGAL_SASL_STATE)
    mechanisms = list(login.settings.mechanisms)
    try:
        login.choose(request.mechanism, client.version)
    except BrokerError as error:
        client.is_last = str(error)
        return SaslHandshakeResponse(error.code, mechanisms)
    return SaslHandshakeResponse(ErrorCode.NONE, mechanisms)
