"""Defects of logins and access rules that we plant to see that the simulation finds them; `teething` says how."""

from typing import Any

from kavka_broker.core.authentication.scram import Exchange
from kavka_broker.core.authentication.session import Session
from kavka_broker.core.authentication.signing_keys import SigningKey
from kavka_broker.core.authentication.token_claims import Named, TokenJudge
from kavka_broker.core.metadata.image.credentials import Credentials
from kavka_broker.core.metadata.image.delegation_tokens import DelegationToken, DelegationTokens
from kavka_broker.net.connection import Connection
from kavka_broker.protocol.messages.metadata.delegation_token_record import DelegationTokenRecord
from kavka_broker.protocol.messages.metadata.user_scram_credential_record import UserScramCredentialRecord
from tests.sim.teething import Patch, tooth


@tooth("a proof of a password is not looked at", "kill isolate", 5, workloads="logins", hectic=True)
def proofs_that_nobody_checks(patch: Patch) -> None:
    patch.setattr(Exchange, "_proves", lambda *_: True)


@tooth("a snapshot leaves out what is kept of passwords", "kill", 12, workloads="logins", hectic=True,
       metadata_log_max_record_bytes_between_snapshots="2000")  # fmt: skip
def snapshots_without_users(patch: Patch) -> None:
    patch.setattr(Credentials, "records", lambda _: iter(()))


@tooth("a user keeps the first password that it was given", "kill isolate", 5, workloads="logins", hectic=True)
def passwords_that_never_change(patch: Patch) -> None:
    replay = Credentials.replay

    def forgetful(self: Credentials, record: object) -> None:
        if not isinstance(record, UserScramCredentialRecord) or self.of(record.name, record.mechanism) is None:
            replay(self, record)  # type: ignore[arg-type]

    patch.setattr(Credentials, "replay", forgetful)


@tooth("a login holds for good once it was proved", "kill isolate", 5, workloads="logins", hectic=True,
       connections_max_reauth_ms="1500")  # fmt: skip
def logins_that_never_end(patch: Patch) -> None:
    patch.setattr(Session, "holds", lambda *_: True)


@tooth("a delegation token lets in behind its end", "kill isolate", 5, workloads="logins", hectic=True)
def tokens_that_never_end(patch: Patch) -> None:
    patch.setattr(DelegationToken, "ends_ms", property(lambda _: 2**62))


@tooth("a delegation token that was removed stays in the image", "kill isolate", 5, workloads="logins", hectic=True)
def tokens_that_are_never_removed(patch: Patch) -> None:
    replay = DelegationTokens.replay

    def keeping(self: DelegationTokens, record: object) -> None:
        if isinstance(record, DelegationTokenRecord):
            replay(self, record)

    patch.setattr(DelegationTokens, "replay", keeping)


@tooth("a snapshot leaves out delegation tokens", "kill", 8, workloads="logins", hectic=True,
       metadata_log_max_record_bytes_between_snapshots="2000")  # fmt: skip
def snapshots_without_tokens(patch: Patch) -> None:
    patch.setattr(DelegationTokens, "records", lambda _: iter(()))


@tooth("the signature of a token is not looked at", "kill isolate", 5, workloads="logins", hectic=True)
def signatures_that_nobody_checks(patch: Patch) -> None:
    patch.setattr(SigningKey, "has_signed", lambda *_: True)


@tooth(
    "the token of an authorization server lets in behind its end", "kill isolate", 5, workloads="logins", hectic=True
)
def issued_tokens_that_never_end(patch: Patch) -> None:
    named = TokenJudge.named

    def lasting(self: TokenJudge, claims: dict[str, Any], now: float) -> Named:
        return named(self, {**claims, "exp": 1e12}, now)

    patch.setattr(TokenJudge, "named", lasting)


@tooth("a connection that does not log in is kept", "kill", 2, workloads="logins")
def silence_without_end(patch: Patch) -> None:
    patch.setattr(Connection, "_end_login", lambda self: None)


@tooth("a login does not end the time that its connection had for it", "kill", 2, workloads="logins",
       connections_max_reauth_ms="0")  # fmt: skip
def deadlines_outlive_logins(patch: Patch) -> None:
    patch.setattr(Connection, "_end_deadline", lambda self: None)
