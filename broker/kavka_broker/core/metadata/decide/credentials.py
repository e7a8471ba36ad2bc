"""What is kept of users' passwords is given and taken away, as Apache Kafka's controller does it (ScramControlManager).

A user of whom one alteration is refused keeps what it has; the other users of the request do not wait for it.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from kavka_broker.core.authentication.scram import ITERATIONS_MAX, ITERATIONS_MIN, MECHANISMS, credential_of
from kavka_broker.core.client_names import NAME_CHARACTERS_MAX
from kavka_broker.core.decision import Decision
from kavka_broker.core.metadata.image.credentials import Credentials
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.alter_user_scram_credentials_request import (
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from kavka_broker.protocol.messages.metadata.remove_user_scram_credential_record import (
    RemoveUserScramCredentialRecord,
)
from kavka_broker.protocol.messages.metadata.user_scram_credential_record import UserScramCredentialRecord

BY_NUMBER: Final = {mechanism.number: mechanism for mechanism in MECHANISMS.values()}
Alteration = ScramCredentialDeletion | ScramCredentialUpsertion


def alter(
    credentials: Credentials,
    deletions: Sequence[ScramCredentialDeletion],
    upsertions: Sequence[ScramCredentialUpsertion],
) -> Decision[dict[str, BrokerError | None]]:
    """Give and take away credentials; the answer has the refusal of each user, or None."""
    asked: list[Alteration] = [*deletions, *upsertions]
    named = Counter((alteration.name, alteration.mechanism) for alteration in asked)
    answers = dict[str, BrokerError | None]()
    for alteration in asked:
        is_alone = named[alteration.name, alteration.mechanism] == 1
        problem = problem_with(credentials, alteration) if is_alone else _twice()
        if answers.get(alteration.name) is None:
            answers[alteration.name] = problem
    records = [record_of(alteration) for alteration in asked if answers[alteration.name] is None]
    return Decision(records, answers)


def problem_with(credentials: Credentials, alteration: Alteration) -> BrokerError | None:
    """Why an alteration cannot be made; None where it can."""
    if alteration.mechanism not in BY_NUMBER:
        return BrokerError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    if not alteration.name:
        return _unacceptable("Username must not be empty")
    if isinstance(alteration, ScramCredentialDeletion):
        is_there = credentials.of(alteration.name, alteration.mechanism) is not None
        words = "Attempt to delete a user credential that does not exist"
        return None if is_there else BrokerError(ErrorCode.RESOURCE_NOT_FOUND, words)
    if len(alteration.name) > NAME_CHARACTERS_MAX:
        return _unacceptable(f"Username must not have more than {NAME_CHARACTERS_MAX} characters")
    if alteration.iterations < ITERATIONS_MIN:
        return _unacceptable("Too few iterations")
    if alteration.iterations > ITERATIONS_MAX:
        return _unacceptable("Too many iterations")
    return None


def record_of(alteration: Alteration) -> Message:
    """The record that makes an alteration true."""
    if isinstance(alteration, ScramCredentialDeletion):
        return RemoveUserScramCredentialRecord(alteration.name, alteration.mechanism)
    mechanism = BY_NUMBER[alteration.mechanism]
    kept = credential_of(mechanism, alteration.salted_password, alteration.salt, alteration.iterations)
    return UserScramCredentialRecord(
        alteration.name, mechanism.number, kept.salt, kept.stored_key, kept.server_key, kept.iterations
    )


def _twice() -> BrokerError:
    words = "A user credential cannot be altered twice in the same request"
    return BrokerError(ErrorCode.DUPLICATE_RESOURCE, words)


def _unacceptable(words: str) -> BrokerError:
    return BrokerError(ErrorCode.UNACCEPTABLE_CREDENTIAL, words)
