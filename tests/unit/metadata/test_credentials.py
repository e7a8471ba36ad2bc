"""What is kept of passwords: given and taken away, what is refused, and that a snapshot keeps it."""

import pytest

from kavka_broker.core.authentication.scram import SHA_256, SHA_512, Credential
from kavka_broker.core.metadata.decide.credentials import Alteration, alter
from kavka_broker.core.metadata.image.credentials import Credentials
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.alter_user_scram_credentials_request import (
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)

E = ErrorCode
ALICE = Credential(b"salt", b"stored", b"server", 4096)


def given(
    user: str = "alice", mechanism: int = 1, iterations: int = 4096, salt: bytes = b"s"
) -> ScramCredentialUpsertion:
    return ScramCredentialUpsertion(user, mechanism, iterations, salt, b"p" * 32)


def gone(user: str = "alice", mechanism: int = 1) -> ScramCredentialDeletion:
    return ScramCredentialDeletion(user, mechanism)


def altered(credentials: Credentials, *asked: Alteration) -> dict[str, ErrorCode | None]:
    """Decide, replay what was decided, and give the codes by user."""
    deletions = [alteration for alteration in asked if isinstance(alteration, ScramCredentialDeletion)]
    upsertions = [alteration for alteration in asked if isinstance(alteration, ScramCredentialUpsertion)]
    decision = alter(credentials, deletions, upsertions)
    for record in decision.records:
        credentials.replay(record)  # type: ignore[arg-type]
    return {user: None if error is None else error.code for user, error in decision.response.items()}


def test_a_user_has_one_credential_a_mechanism_and_the_last_one_given_counts() -> None:
    kept = Credentials()
    assert altered(kept, given(), given(mechanism=2, iterations=8192), given("bob")) == {"alice": None, "bob": None}
    assert kept.iterations() == {"alice": {1: 4096, 2: 8192}, "bob": {1: 4096}}
    before = kept.of("alice", SHA_256.number)
    altered(kept, given(salt=b"other"))
    assert kept.of("alice", SHA_256.number) != before is not None
    assert kept.of("alice", SHA_512.number) is not None
    assert kept.of("bob", SHA_512.number) is kept.of("carol", SHA_256.number) is None


def test_the_last_credential_takes_its_user_along() -> None:
    kept = Credentials()
    altered(kept, given(), given(mechanism=2))
    assert altered(kept, gone(mechanism=2)) == {"alice": None}
    assert kept.iterations() == {"alice": {1: 4096}}
    altered(kept, gone())
    assert kept == Credentials()
    with pytest.raises(AssertionError, match="alice has no credential 1 to take away"):
        kept.replay(*alter_records(gone()))  # type: ignore[arg-type]


def alter_records(deletion: ScramCredentialDeletion) -> list[Message]:
    there = Credentials()
    altered(there, given(deletion.name, deletion.mechanism))
    return list(alter(there, [deletion], []).records)


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ([given(mechanism=0)], E.UNSUPPORTED_SASL_MECHANISM),
        ([gone(mechanism=3)], E.UNSUPPORTED_SASL_MECHANISM),
        ([given("")], E.UNACCEPTABLE_CREDENTIAL),
        ([gone("")], E.UNACCEPTABLE_CREDENTIAL),
        ([given("u" * 256)], None),
        ([given("u" * 257)], E.UNACCEPTABLE_CREDENTIAL),
        ([gone("u" * 257)], E.RESOURCE_NOT_FOUND),
        ([given(iterations=4095)], E.UNACCEPTABLE_CREDENTIAL),
        ([given(iterations=16_385)], E.UNACCEPTABLE_CREDENTIAL),
        ([given(iterations=16_384)], None),
        ([gone(mechanism=2)], E.RESOURCE_NOT_FOUND),
        ([given(), given(iterations=5000)], E.DUPLICATE_RESOURCE),
        ([gone(), given()], E.DUPLICATE_RESOURCE),
        ([gone(), given(mechanism=2)], None),
        ([given(mechanism=2), given(iterations=1)], E.UNACCEPTABLE_CREDENTIAL),
    ],
)
def test_a_user_is_altered_whole_or_keeps_what_it_has(asked: list[Alteration], code: ErrorCode | None) -> None:
    kept = Credentials()
    altered(kept, given())
    before = kept.iterations()
    answers = altered(kept, *asked, given("bob"))
    assert answers == {asked[0].name: code, "bob": None}
    assert "bob" in kept.iterations()
    if code is not None:
        assert {user: found for user, found in kept.iterations().items() if user != "bob"} == before


def test_a_snapshot_keeps_every_credential() -> None:
    kept, loaded = Credentials(), Credentials()
    altered(kept, given("bob"), given(), given("bob", mechanism=2))
    for record in kept.records():
        loaded.replay(record)
    assert loaded == kept == kept.copy()
    assert list(loaded.records()) == list(kept.records())
    copy = kept.copy()
    altered(copy, gone())
    assert "alice" in kept.iterations()


def test_a_refusal_says_no_password() -> None:
    decision = alter(Credentials(), [], [ScramCredentialUpsertion("a", 1, 1, b"s", b"hidden")])
    error = decision.response["a"]
    assert isinstance(error, BrokerError)
    assert "hidden" not in str(error)
