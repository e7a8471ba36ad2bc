"""Logins by delegation tokens: the secret is the password, the owner the user, and the token's end the login's."""

from base64 import b64encode
from hmac import digest

import pytest

from kavka_broker.core.authentication.auth_metrics import Authentications
from kavka_broker.core.authentication.delegation import TokenSecrets
from kavka_broker.core.authentication.login import Login, Proof
from kavka_broker.core.authentication.sasl import SaslSettings
from kavka_broker.core.authentication.scram import SHA_256, SHA_512, Mechanism, TokenLogin
from kavka_broker.core.metadata.image.delegation_tokens import DelegationToken
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from tests.unit.authentication.scripted import NONCE, kept, last

NOW_MS = 1_000_000
TOKEN = DelegationToken("id", "User:alice:x", "User:bob", (), 0, NOW_MS + 500, NOW_MS + 300)
SECRETS = TokenSecrets("key")
FIRST = b"n,,n=id,r=fyko+d2lbbFgONRv9qkxdawL,tokenauth=true"


def password(token_id: str = "id") -> str:
    return b64encode(SECRETS.of(token_id)).decode()


class Scripted:
    """A login over SCRAM, and the token that a broker finds for it."""

    def __init__(self, mechanism: Mechanism = SHA_256) -> None:
        self.mechanism = mechanism
        self.token: DelegationToken | None = TOKEN
        self.now_ms = NOW_MS
        self.login = Login(SaslSettings((mechanism.name,)), Authentications())
        self.login.choose(mechanism.name, 1)

    def find(self, token_id: str, number: int) -> TokenLogin | None:
        found = self.token if self.token is not None and self.token.token_id == token_id else None
        return SECRETS.login_by(found, number, self.now_ms)

    def say(self, message: bytes) -> Proof:
        user = {"id": kept(self.mechanism, "of the user")}
        return self.login.authenticate(
            message, lambda name, _: user.get(name), lambda: NONCE, 2, self.now_ms, self.find
        )

    def log_in(self, first: bytes = FIRST, secret: str | None = None) -> Proof:
        answer = self.say(first).answer
        return self.say(last(self.mechanism, password() if secret is None else secret, first, answer))


def test_the_secret_is_an_hmac_of_the_id_as_apache_kafka_makes_it() -> None:
    assert SECRETS.of("id") == digest(b"key", b"id", "sha512")


@pytest.mark.parametrize("mechanism", [SHA_256, SHA_512])
def test_who_knows_the_secret_is_the_owner_until_the_token_ends(mechanism: Mechanism) -> None:
    scripted = Scripted(mechanism)
    proof = scripted.log_in()
    assert (proof.user, proof.is_by_token) == ("alice:x", True)
    session = scripted.login.session_of("alice:x", 5.0, NOW_MS)
    assert session is not None
    assert (session.lifetime_ms, session.ends_ms) == (300, 305.0)


@pytest.mark.parametrize("extension", ["tokenauth=TRUE", "x=y,tokenauth=true"])
def test_the_extension_is_read_as_apache_kafka_reads_it(extension: str) -> None:
    assert Scripted().log_in(FIRST.replace(b"tokenauth=true", extension.encode())).is_by_token


@pytest.mark.parametrize(
    "extension",
    [
        "tokenauth=false",
        "tokenauth=yes",
        "x=y",
        "Tokenauth=true",
        "tokenauth=true,tokenauth=false",
        "tokenauth=false,tokenauth=true",
    ],
)
def test_without_it_the_name_is_that_of_a_user(extension: str) -> None:
    first = FIRST.replace(b"tokenauth=true", extension.encode())
    proof = Scripted().log_in(first, "of the user")
    assert (proof.user, proof.is_by_token) == ("id", False)
    assert refused(Scripted(), first) == ErrorCode.SASL_AUTHENTICATION_FAILED


def refused(scripted: Scripted, first: bytes = FIRST, secret: str | None = None) -> ErrorCode:
    with pytest.raises(BrokerError) as caught:
        scripted.log_in(first, secret)
    return caught.value.code


@pytest.mark.parametrize("secret", ["of the user", "", password("other")])
def test_nothing_else_is_the_secret(secret: str) -> None:
    assert refused(Scripted(), secret=secret) == ErrorCode.SASL_AUTHENTICATION_FAILED


@pytest.mark.parametrize("after_ms", [300, 301])
def test_a_token_that_is_over_lets_nobody_in(after_ms: int) -> None:
    scripted = Scripted()
    scripted.now_ms += after_ms
    if after_ms == 300:
        assert scripted.log_in().user == "alice:x"
    else:
        assert refused(scripted) == ErrorCode.SASL_AUTHENTICATION_FAILED


@pytest.mark.parametrize("is_removed", [True, False])
def test_nor_does_one_that_ends_between_the_messages_of_a_login(is_removed: bool) -> None:
    scripted = Scripted()
    answer = scripted.say(FIRST).answer
    if is_removed:
        scripted.token = None
    else:
        scripted.now_ms += 301
    with pytest.raises(BrokerError):
        scripted.say(last(SHA_256, password(), FIRST, answer))


def test_a_broker_without_tokens_finds_none() -> None:
    login = Login(SaslSettings((SHA_256.name,)), Authentications())
    login.choose(SHA_256.name, 1)
    with pytest.raises(BrokerError):
        login.authenticate(FIRST, lambda *_: kept(SHA_256), lambda: NONCE, 2)


def test_secrets_are_learned_once_and_forgotten_with_their_tokens() -> None:
    secrets = TokenSecrets("key")
    assert secrets.to_learn({"a": 1, "b": 2}) == ["a", "b"]
    secrets.learn(["a", "b"])
    assert (secrets.id_of(secrets.of("a")), secrets.id_of(b"x")) == ("a", None)
    assert secrets.to_learn(["b", "c"]) == ["c"]
    assert secrets.id_of(secrets.of("a")) is None
    assert secrets.id_of(secrets.of("b")) == "b"


def test_what_scram_keeps_of_a_secret_is_worked_out_once() -> None:
    secrets = TokenSecrets("key")
    first, again = (secrets.login_by(TOKEN, SHA_512.number, NOW_MS) for _ in range(2))
    assert first is not None
    assert again is not None
    assert first.credential is again.credential
    another = TokenSecrets("another").login_by(TOKEN, SHA_512.number, NOW_MS)
    assert another is not None
    assert first.credential != another.credential
