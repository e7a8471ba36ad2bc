"""Users, passwords and rules that change while nodes fail, among nodes that log in at each other.

| rule | broken where |
|---|---|
| StrangersStayOut | a password that was never given lets somebody in, at any moment |
| PasswordsAreKept | after healing a node takes another password than the one that may be the last, or none |
| RulesAreKept | after healing a node lets a user do what no rule that may be the last lets it do, or refuses it |

`renewals` has the rules of logins that hold for a while only, which those of some seeds do, the nodes' own among them;
`bearers` has those of delegation tokens, `issued` those of tokens that an authorization server has signed, `silent`
that of connections that never log in.
Brokers and controllers speak SASL to each other, with an authorizer, so every vote and every fetch of a follower is one
of a user. What was not answered may have happened, also later: it may be the last word.
"""

from collections.abc import Hashable, Iterable, Mapping
from contextlib import suppress
from random import Random
from typing import Any, Final, Generic, TypeVar

from kavka_broker.core.authentication.inter_node import LoginSettings
from kavka_broker.core.authentication.scram import ITERATIONS_MIN, SHA_256, salted
from kavka_broker.core.authentication.scram_client import LoginError
from kavka_broker.core.authorization.settings import STANDARD
from kavka_broker.net.outbound import Outbound
from kavka_broker.net.outbound_login import Ask, Introduction
from kavka_broker.peers import Unreachable
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages import alter_user_scram_credentials_request as altering
from kavka_broker.protocol.messages.alter_user_scram_credentials_response import AlterUserScramCredentialsResponse
from kavka_broker.protocol.messages.create_acls_request import AclCreation, CreateAclsRequest
from kavka_broker.protocol.messages.create_acls_response import CreateAclsResponse
from kavka_broker.protocol.messages.delete_acls_request import DeleteAclsFilter, DeleteAclsRequest
from kavka_broker.protocol.messages.delete_acls_response import DeleteAclsResponse
from kavka_broker.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kavka_broker.protocol.messages.metadata_response import MetadataResponse
from tests.sim import bearers, issued
from tests.sim.bearers import Bearer
from tests.sim.clients import ANSWER_MS, Admin, Client
from tests.sim.events import LOGIN_ENDED
from tests.sim.issued import Issued
from tests.sim.node import CONTROLLER, INTERNAL, INTERNAL_PORT
from tests.sim.renewals import USER, Renewer
from tests.sim.silent import Silent
from tests.sim.workloads import Workload

TOPIC: Final = "guarded"
MODULE: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"
NODES: Final = f'{MODULE} required username="node" password="of nodes" user_node="of nodes";'
NEVER_GIVEN: Final = "never given"
LIFETIMES_MS: Final = (0, 1500, 4000)  # how long a login holds; 0: as long as its connection
SUPERSEDED_MAX: Final = 3  # passwords of old that are tried at the end
DESCRIBE, ALLOW, LITERAL, TOPICS, ANY = 8, 3, 3, 2, 1
T = TypeVar("T", bound=Hashable)


class LastWord(Generic[T]):
    """What something may be after alterations of which some were not answered."""

    def __init__(self, first: T) -> None:
        self.answered = first
        self.unanswered: dict[T, None] = {}
        self.superseded: list[T] = []

    def told(self, value: T, *, is_answered: bool) -> None:
        """Note an alteration and whether it was answered."""
        if is_answered:
            self.superseded.append(self.answered)
            self.answered = value
        else:
            self.unanswered[value] = None

    @property
    def possible(self) -> list[T]:
        """Every value that may be the last."""
        return [self.answered, *(value for value in self.unanswered if value != self.answered)]

    @property
    def impossible(self) -> list[T]:
        """The newest values that cannot be the last any more."""
        return [value for value in self.superseded if value not in self.possible][-SUPERSEDED_MAX:]


class Owner(Client):
    """Gives its user one password after the other, or takes it away, and a rule that lets it see a topic."""

    is_stopping = False
    is_done = False

    async def run(self) -> None:
        self.password: LastWord[str] = LastWord("")  # empty: none
        self.rule: LastWord[bool] = LastWord(False)
        count = 0
        while not self.is_done:
            await self.rest(0.3, 1.5)
            is_last, count = self.is_stopping, count + 1
            word = f"password {count}" if is_last or self.random.random() < 0.8 else ""
            has_word = await self._alter(word)
            has_rule = await self._let(not self.rule.answered)
            self.is_done = is_last and has_word and has_rule

    async def _alter(self, word: str) -> bool:
        salt = self.random.randbytes(16)
        given = altering.ScramCredentialUpsertion(USER, SHA_256.number, ITERATIONS_MIN, salt)
        if word:
            given.salted_password = salted(SHA_256, word, salt, ITERATIONS_MIN)
        taken = altering.ScramCredentialDeletion(USER, SHA_256.number)
        request = altering.AlterUserScramCredentialsRequest([] if word else [taken], [given] if word else [])
        answer = await self.ask_any(request, AlterUserScramCredentialsResponse)
        is_answered = isinstance(answer, AlterUserScramCredentialsResponse) and not answer.results[0].error_code
        self.password.told(word, is_answered=is_answered)
        return is_answered

    async def _let(self, may: bool) -> bool:
        name, user = TOPIC, f"User:{USER}"
        request: Message
        if may:
            request = CreateAclsRequest([AclCreation(TOPICS, name, LITERAL, user, "*", DESCRIBE, ALLOW)])
            answer = await self.ask_any(request, CreateAclsResponse)
            is_answered = isinstance(answer, CreateAclsResponse) and not answer.results[0].error_code
        else:
            request = DeleteAclsRequest([DeleteAclsFilter(TOPICS, name, LITERAL, user, "*", DESCRIBE, ALLOW)])
            answer = await self.ask_any(request, DeleteAclsResponse)
            is_answered = isinstance(answer, DeleteAclsResponse) and not answer.filter_results[0].error_code
        self.rule.told(may, is_answered=is_answered)
        return is_answered


class Careless(Introduction):
    """Goes on behind a login, whatever came of it: the node alone has to keep it out."""

    async def log_in(self, ask: Ask) -> int:
        with suppress(LoginError):
            return await super().log_in(ask)
        return 0


class Visitor(Client):
    """Logs in where brokers talk to each other, by a password that was given or by one that never was."""

    is_stopping = False
    owner: Owner

    async def run(self) -> None:
        self.let_in = self.refused = 0
        self.nonces = self.stream("nonces")
        self.wrongly: list[str] = []
        while not self.is_stopping:
            await self.rest(0.2, 1.0)
            host, _ = self.random.choice(self._addresses)
            if self.random.random() < 0.5:
                if await self.sees(host, NEVER_GIVEN) is not None:
                    self.wrongly.append(f"StrangersStayOut: {host} let {self.name} in at {self.loop.time():.3f}")
                self.refused += 1
            elif self.owner.password.answered:
                self.let_in += await self.sees(host, self.owner.password.answered) is not None

    async def sees(self, host: str, password: str) -> bool | None:
        """Whether the user may see the topic, by this node; None where it is not let in."""
        login = LoginSettings(SHA_256.name, USER, password)
        peer = Outbound(Careless(login=login, random_bytes=self.nonces.randbytes)).to(
            host, INTERNAL_PORT, client_id=self.name
        )
        request = MetadataRequest([MetadataRequestTopic(name=TOPIC)], allow_auto_topic_creation=False)
        try:
            answer = await peer.ask(request, MetadataResponse, timeout_ms=ANSWER_MS)
        except Unreachable:
            return None
        finally:
            peer.close()
        return not answer.topics[0].error_code


class Logins(Workload):
    """One user, who gives it its passwords, and one that logs in."""

    share = 0.2

    @classmethod
    def settings(cls, random: Random) -> dict[str, str]:
        protocols = f"PLAINTEXT:PLAINTEXT,{INTERNAL}:SASL_PLAINTEXT,{CONTROLLER}:SASL_PLAINTEXT"
        return {
            "listener.security.protocol.map": protocols,
            "sasl.enabled.mechanisms": f"PLAIN,{SHA_256.name}",
            f"listener.name.{INTERNAL.lower()}.sasl.enabled.mechanisms": f"PLAIN,{SHA_256.name},OAUTHBEARER",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "sasl.mechanism.controller.protocol": "PLAIN",
            f"listener.name.{INTERNAL.lower()}.plain.sasl.jaas.config": NODES,
            f"listener.name.{CONTROLLER.lower()}.plain.sasl.jaas.config": NODES,
            "connections.max.reauth.ms": str(random.choice(LIFETIMES_MS)),
            **bearers.SETTINGS,
            **issued.SETTINGS,
            "authorizer.class.name": STANDARD,
            "super.users": "User:node;User:ANONYMOUS",  # whom the clients of the other workloads are
        }

    async def begin(self, admin: Admin) -> None:
        await admin.create(TOPIC, 1, self.shape.replication_factor)

    def clients(self) -> Iterable[Client]:
        self._owner = self.as_client(Owner, "owner")
        self._visitor = self.as_client(Visitor, "visitor")
        self._visitor.owner = self._owner
        self._renewer = self.as_client(Renewer, "renewer")
        self._renewer.password_of = lambda: self._owner.password.answered
        self._bearer = self.as_client(Bearer, "bearer")
        clocks = {node.host: node.clock for node in self.simulation.nodes}
        self._bearer.clock_of = lambda host: int(clocks[host].now_ms())
        self._issued = self.as_client(Issued, "issued")
        self._issued.clock_of = self._bearer.clock_of
        self._silent = self.as_client(Silent, "silent")
        # What a stranger's host is refused is no matter: another one would hide who else is turned away there.
        self._silent.process.host = self._visitor.process.host
        self._ended = 0
        self.simulation.events.listeners["connection.closed"].append(self._closed)
        for guesser in (self._visitor, self._renewer, self._bearer, self._issued, self._silent):
            self.simulation.events.strangers.add(self.simulation.network.address_of(guesser.process.host))
        return [self._owner, self._visitor, self._renewer, self._bearer, self._issued]

    def _closed(self, _: str, fields: Mapping[str, Any]) -> None:
        self._ended += str(fields["reason"]).startswith(LOGIN_ENDED)

    def stop(self) -> None:
        self._owner.is_stopping = self._visitor.is_stopping = self._renewer.is_stopping = True
        self._bearer.is_stopping = self._issued.is_stopping = True

    def missing(self) -> list[str]:
        return [] if self._owner.is_done else ["the owner's last alterations are not answered"]

    async def judge(self) -> list[str]:
        found = [anomaly for host, _ in self.simulation.addresses for anomaly in await self._of_node(host)]
        self.reached(logins=self._visitor.let_in, logins_refused=self._visitor.refused)
        self.reached(passwords=len(self._owner.password.superseded))
        self.reached(logins_renewed=self._renewer.renewed, logins_ended=self._ended)
        self.reached(tokens_shown=self._bearer.let_in, tokens_refused=self._bearer.refused)
        self.reached(tokens_removed=self._bearer.removed)
        self.reached(issued_shown=self._issued.let_in, issued_refused=self._issued.refused)
        clients = self._visitor, self._renewer, self._bearer, self._issued
        return [*(anomaly for client in clients for anomaly in client.wrongly), *found]

    async def afterwards(self) -> list[str]:
        found: list[str] = await self.running(self._silent, self._silent.judge(self.simulation.nodes))
        self.reached(logins_missed=len(self.simulation.nodes) - len(found))
        return found

    async def _of_node(self, host: str) -> list[str]:
        """What one node takes that it should not, or refuses."""
        of_tokens: list[str] = await self.running(self._bearer, self._bearer.judge(host))
        of_issued: list[str] = await self.running(self._issued, self._issued.judge(host))
        return of_tokens or of_issued or await self._of_passwords(host)

    async def _of_passwords(self, host: str) -> list[str]:
        passwords, rule = self._owner.password, self._owner.rule
        seen = {word: await self._sees(host, word) for word in passwords.possible if word}
        taken = [word for word, sees in seen.items() if sees is not None]
        wrong = [word for word in passwords.impossible if word and await self._sees(host, word) is not None]
        if wrong or len(taken) > 1 or (not taken and "" not in passwords.possible):
            return [f"PasswordsAreKept: {host} takes {[*taken, *wrong]}, the last is of {passwords.possible}"]
        if taken and seen[taken[0]] not in rule.possible:
            return [f"RulesAreKept: {host} lets see: {seen[taken[0]]}, the last rule is of {rule.possible}"]
        return []

    async def _sees(self, host: str, password: str) -> bool | None:
        sees: bool | None = await self.running(self._visitor, self._visitor.sees(host, password))
        return sees
