"""Logins by tokens that an authorization server has signed (KIP-768), in a cluster that fails.

| rule | broken where |
|---|---|
| IssuedAlone | a node lets in by a token that is over or holds later by its clock, of another issuer, or changed |
| IssuedIsLetIn | after healing a node does not let in by a token that holds |

The key lies beside, in a file that nodes read and in one that only the client reads. Signatures by RSA are the same
each time, so that a seed repeats.
"""

import json
from base64 import urlsafe_b64encode
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from kavka_broker.core.authentication.inter_node import LoginSettings
from kavka_broker.core.authentication.oauthbearer import MECHANISM
from kavka_broker.core.authentication.scram_client import LoginError
from kavka_broker.core.authentication.token_keys import VALIDATOR
from kavka_broker.net.outbound import Outbound
from kavka_broker.net.outbound_login import Ask, Introduction
from kavka_broker.peers import Unreachable
from kavka_broker.protocol.messages.metadata_request import MetadataRequest
from kavka_broker.protocol.messages.metadata_response import MetadataResponse
from kavka_broker.protocol.messages.sasl_authenticate_request import SaslAuthenticateRequest
from kavka_broker.protocol.messages.sasl_authenticate_response import SaslAuthenticateResponse
from kavka_broker.protocol.messages.sasl_handshake_request import SaslHandshakeRequest
from kavka_broker.protocol.messages.sasl_handshake_response import SaslHandshakeResponse
from tests.sim.clients import ANSWER_MS, Client
from tests.sim.node import INTERNAL, INTERNAL_PORT
from tests.sim.renewals import USER

NAME: Final = "the issuer"
PUBLIC: Final = Path(__file__).with_name("issuer.json")
OWN: Final = f"listener.name.{INTERNAL.lower()}.oauthbearer"
SETTINGS: Final = {
    f"{OWN}.sasl.jaas.config": "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;",
    f"{OWN}.sasl.server.callback.handler.class": VALIDATOR,
    "sasl.oauthbearer.jwks.endpoint.url": PUBLIC.as_uri(),
    "sasl.oauthbearer.expected.issuer": NAME,
    "sasl.oauthbearer.clock.skew.seconds": "0",
}
LONG_SECONDS, SHORT_SECONDS = 10**8, 1
WRONG: Final = ("over", "later", "another issuer", "changed")


def key() -> RSAPrivateKey:
    """The key of the authorization server."""
    found = load_pem_private_key(PUBLIC.with_suffix(".pem").read_bytes(), None)
    assert isinstance(found, RSAPrivateKey)
    return found


def encoded(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def signed(by: RSAPrivateKey, claims: dict[str, Any], *, is_changed: bool = False) -> str:
    """A token with these claims; a changed one names another user than was signed."""
    head, body = (encoded(json.dumps(part).encode()) for part in ({"alg": "RS256", "kid": "first"}, claims))
    signature = encoded(by.sign(f"{head}.{body}".encode(), PKCS1v15(), SHA256()))
    shown = encoded(json.dumps({**claims, "sub": "node"}).encode()) if is_changed else body
    return f"{head}.{shown}.{signature}"


class Presenting(Introduction):
    """Logs in by a token, the password, and goes on whatever came of it: the node alone has to keep it out."""

    async def log_in(self, ask: Ask) -> int:
        assert self.login is not None
        first = f"n,,\x01auth=Bearer {self.login.password}\x01\x01".encode()
        with suppress(LoginError):
            await ask(SaslHandshakeRequest(MECHANISM), SaslHandshakeResponse)
            answer = await ask(SaslAuthenticateRequest(first), SaslAuthenticateResponse)
            if answer.auth_bytes:  # the refusal, which has to be acknowledged before it is final
                await ask(SaslAuthenticateRequest(b"\x01"), SaslAuthenticateResponse)
        return 0


class Issued(Client):
    """Logs in by tokens that hold and by those that do not."""

    is_stopping = False
    clock_of: Callable[[str], int]  # the time of a node, by its host

    async def run(self) -> None:
        self.let_in = self.refused = 0
        self.key = key()
        self.wrongly: list[str] = []
        while not self.is_stopping:
            await self.rest(0.3, 1.2)
            host, _ = self.random.choice(self._addresses)
            if self.random.random() < 0.5:
                self.let_in += await self.is_let_in(host, self.token(host, "held"))
            elif problem := await self.problem(host, self.random.choice(WRONG)):
                self.wrongly.append(f"{problem} at {self.loop.time():.3f}")

    async def problem(self, host: str, wrong: str) -> str:
        """What is wrong with how a node takes a token that does not hold; nothing where all is well."""
        token = self.token(host, wrong)
        if wrong == "over":
            await self.rest(SHORT_SECONDS, 2 * SHORT_SECONDS)
        before_ms, is_let_in = self.clock_of(host), await self.is_let_in(host, token)
        # A clock may be set: a token is over, or does not hold yet, where it was so at both ends of the login.
        times = [before_ms / 1000, self.clock_of(host) / 1000]
        is_wrong = wrong in {"another issuer", "changed"} or not any(self.begin <= time < self.end for time in times)
        self.refused += is_wrong and not is_let_in
        return f"IssuedAlone: {host} let {self.name} in by a token: {wrong}" if is_wrong and is_let_in else ""

    def token(self, host: str, kind: str) -> str:
        """A token of a kind, by the clock of a node; it holds from `begin` to before `end`."""
        now = self.clock_of(host) / 1000
        self.begin = now + LONG_SECONDS if kind == "later" else 0.0
        self.end = now + (SHORT_SECONDS if kind == "over" else 2 * LONG_SECONDS)
        issuer = "another" if kind == "another issuer" else NAME
        claims = {"iss": issuer, "sub": USER, "iat": now, "nbf": self.begin, "exp": self.end}
        return signed(self.key, claims, is_changed=kind == "changed")

    async def is_let_in(self, host: str, token: str) -> bool:
        """Whether a node serves the client once it has shown a token."""
        presenting = Presenting(login=LoginSettings(MECHANISM, USER, token), random_bytes=self.random.randbytes)
        peer = Outbound(presenting).to(host, INTERNAL_PORT, client_id=self.name)
        try:
            await peer.ask(MetadataRequest([]), MetadataResponse, timeout_ms=ANSWER_MS)
        except Unreachable:
            return False
        finally:
            peer.close()
        return True

    async def judge(self, host: str) -> list[str]:
        """What one node takes that it should not, or refuses, after healing."""
        found = [await self.problem(host, self.random.choice(WRONG[1:]))]  # each refusal is delayed
        if not await self.is_let_in(host, self.token(host, "held")):
            found.append(f"IssuedIsLetIn: {host} does not let in by a token that holds")
        return [problem for problem in found if problem]
