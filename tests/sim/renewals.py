"""Logins that hold for a while only, in a cluster that fails: a client that renews its own, or does not.

| rule | broken where |
|---|---|
| SessionsEnd | a node serves a request that was sent behind the end of a login that was not renewed |
| PasswordsAreKept | a login is renewed by a password that was never given |

The end is the node's; the client counts from the answer that told it, which came later. So whatever it sends behind its
own end comes behind the node's too, where the node's clock is as fast: the client allows for one that is slow.
"""

from collections.abc import Callable
from typing import Final

from kavka_broker.core.authentication.inter_node import LoginSettings
from kavka_broker.core.authentication.scram import SHA_256
from kavka_broker.core.authentication.scram_client import LoginError
from kavka_broker.net.outbound import Limit, Link, Outbound, Remote
from kavka_broker.net.outbound_login import Ask, Introduction
from kavka_broker.peers import Unreachable
from kavka_broker.protocol.messages.metadata_request import MetadataRequest
from kavka_broker.protocol.messages.metadata_response import MetadataResponse
from tests.sim.clients import ANSWER_MS, Client
from tests.sim.node import INTERNAL_PORT

USER: Final = "alice"
LINGERING_SECONDS_MAX: Final = 2.0
CLOCK_RATE_MIN: Final = 0.9  # of a node whose clock drifts
NEVER_GIVEN: Final = "never given either"


class Attentive(Introduction):
    """Tells for how long a login holds, and nothing else: no other connection takes over from it."""

    lifetime_ms = 0

    async def log_in(self, ask: Ask) -> int:
        object.__setattr__(self, "lifetime_ms", await super().log_in(ask))
        return 0


class Renewer(Client):
    """Logs in, waits until the login is over, and then asks on, or renews it first."""

    is_stopping = False
    password_of: Callable[[], str]  # the one that was given last; empty: none

    async def run(self) -> None:
        self.renewed = 0
        self.nonces = self.stream("nonces")
        self.wrongly: list[str] = []
        while not self.is_stopping:
            await self.rest(0.2, 1.0)
            if password := self.password_of():
                host, _ = self.random.choice(self._addresses)
                await self._linger(host, password)

    async def _linger(self, host: str, password: str) -> None:
        introduction = Attentive(login=login(password), random_bytes=self.nonces.randbytes)
        remote = Outbound(introduction).to(host, INTERNAL_PORT, client_id=self.name)
        assert isinstance(remote, Remote)
        try:
            await remote.ask(MetadataRequest([]), MetadataResponse, timeout_ms=ANSWER_MS)
            link = remote.link
            if link is not None and introduction.lifetime_ms:
                await self._live_on(host, link, introduction.lifetime_ms / 1000)
        except Unreachable:
            return  # cut off, restarted, or the password is not the one any more
        finally:
            remote.close()

    async def _live_on(self, host: str, link: Link, lifetime_seconds: float) -> None:
        """Raises Unreachable where the connection is closed, or the node cut off."""
        ends_at = self.loop.time() + lifetime_seconds / CLOCK_RATE_MIN
        choice = self.random.random()
        if choice < 0.5:
            await self.rest(lifetime_seconds / 2, lifetime_seconds + LINGERING_SECONDS_MAX)
            await self._renew(host, link, self.password_of() if choice < 0.3 else NEVER_GIVEN)
            return
        await self.rest(lifetime_seconds, lifetime_seconds + LINGERING_SECONDS_MAX)
        sent_at = self.loop.time()
        if sent_at <= ends_at:
            return
        await self._ask(link)
        self.wrongly.append(
            f"SessionsEnd: {host} served {self.name} at {sent_at:.3f}, whose login held to {ends_at:.3f}"
        )

    async def _renew(self, host: str, link: Link, password: str) -> None:
        """Raises Unreachable, as above."""
        introduction = Introduction(login=login(password), random_bytes=self.nonces.randbytes)
        try:
            await introduction.log_in(link.ask_unbounded)
        except LoginError:
            return
        if password == NEVER_GIVEN:
            self.wrongly.append(f"PasswordsAreKept: {host} renewed a login by what is none at {self.loop.time():.3f}")
        await self._ask(link)
        self.renewed += 1

    async def _ask(self, link: Link) -> None:
        await link.ask(MetadataRequest([]), MetadataResponse, Limit.after(ANSWER_MS))


def login(password: str) -> LoginSettings:
    """How the user logs in."""
    return LoginSettings(SHA_256.name, USER, password)
