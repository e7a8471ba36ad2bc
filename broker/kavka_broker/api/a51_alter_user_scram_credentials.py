"""AlterUserScramCredentials (51): give users passwords for SCRAM, or take them away (KIP-554).

- A password comes salted; what is kept of it is worked out here, and no answer, log line or metric shows either.
- Each user for itself: UNSUPPORTED_SASL_MECHANISM, UNACCEPTABLE_CREDENTIAL (no name, iterations below 4,096 or above
  16,384), RESOURCE_NOT_FOUND for what is to be deleted, DUPLICATE_RESOURCE for one mechanism named twice.
- More than 500 alterations, or 64 KiB, close the connection: they are decided in one turn, as a user changes whole or
  not at all.
- Answered when it is committed; a login finds it as soon as its broker's image has it. Who is logged in stays so.
Versions: flexible from 0.
"""

from typing import Final

from kavka_broker.core.metadata.decide.credentials import alter
from kavka_broker.protocol.errors import BrokerError, ProtocolViolation
from kavka_broker.protocol.messages.alter_user_scram_credentials_request import AlterUserScramCredentialsRequest
from kavka_broker.protocol.messages.alter_user_scram_credentials_response import (
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.registry import BOTH, api

ALTERATIONS_MAX: Final = 500
"""Alterations of a request: they take 10 us each."""
REQUEST_BYTES_MAX: Final = 64 * 1024
"""As many have room in it, at some 75 bytes each. What is hashed on the loop is no longer than this."""


@api(
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    versions=(0, 0),
    on=BOTH,
    forwarded=True,
    bytes_max=REQUEST_BYTES_MAX,
)
async def alter_user_scram_credentials(
    request: AlterUserScramCredentialsRequest, broker: Broker, client: Client
) -> AlterUserScramCredentialsResponse:
    """Answer each user's refusal, or none. Raises ProtocolViolation for more than can be decided in one turn."""
    del client
    asked = request.deletions, request.upsertions
    if (count := len(request.deletions) + len(request.upsertions)) > ALTERATIONS_MAX:
        raise ProtocolViolation(f"{count} alterations of credentials in one request; {ALTERATIONS_MAX} are allowed")
    refusals: dict[str, BrokerError | None]
    try:
        refusals = await broker.active.submit(lambda metadata, _: alter(metadata.credentials, *asked))
    except BrokerError as error:
        refusals = dict.fromkeys((alteration.name for part in asked for alteration in part), error)
    return AlterUserScramCredentialsResponse(results=[result(user, error) for user, error in refusals.items()])


def result(user: str, refusal: BrokerError | None) -> AlterUserScramCredentialsResult:
    """The outcome of one user's alterations."""
    if refusal is None:
        return AlterUserScramCredentialsResult(user, error_message=None)
    return AlterUserScramCredentialsResult(user, refusal.code, refusal.message)
