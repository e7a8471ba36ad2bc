"""A Kafka and Secrets in memory, and resources of users as one look after the other leaves them."""

from dataclasses import dataclass, field
from datetime import timedelta

from kavka_operator.api.kinds import Key, Managed, key_of
from kavka_operator.api.resource import Condition
from kavka_operator.api.user import KafkaUserStatus
from kavka_operator.domain.observed import Login
from kavka_operator.loop.converge import Outcome, converge
from kavka_operator.loop.observation import Observation
from kavka_operator.loop.passwords import Passwords
from tests.unit.operator.fakes import NOW, FakeKafka, FakeSecrets

READS = {"resource": {"type": "Topic", "name": "orders"}, "operations": ["Read", "Describe"]}
OF_GROUP = {"resource": {"type": "Group", "name": "etl-", "patternType": "Prefixed"}, "operations": ["Read"]}


def asking() -> FakeKafka:
    """A Kafka with a listener that asks who clients are."""
    kafka = FakeKafka()
    kafka.logins = {"SCRAM-SHA-512": Login("SASL_PLAINTEXT", ("127.0.0.1:9192",))}
    return kafka


@dataclass(slots=True)
class Scene:
    """A Kafka, Secrets, and resources as the last look has left them."""

    kafka: FakeKafka = field(default_factory=asking)
    secrets: FakeSecrets = field(default_factory=FakeSecrets)
    now: float = 0.0
    known: dict[Key, Managed] = field(default_factory=dict)

    def look(self, *changed: Managed) -> Outcome:
        """Look with resources changed as given; their statuses are kept."""
        for resource in changed:
            before = self.known.get(key_of(resource))
            kept = {} if before is None else {"status": before.status}
            self.known[key_of(resource)] = resource.replaced(kept)
        moment = NOW + timedelta(days=self.now)
        outcome = converge(
            Observation(list(self.known.values()), moment), self.kafka, passwords=Passwords(self.secrets)
        )
        for key, status in outcome.statuses.items():
            self.known[key] = self.known[key].replaced({"status": status})
        for key in outcome.released:
            del self.known[key]
        return outcome

    def rest(self) -> None:
        """Look again, and see that nothing is written anywhere and no status changes."""
        before = len(self.kafka.writes), self.kafka.requests, self.secrets.writes, dict(self.known)
        self.look()
        assert (len(self.kafka.writes), self.kafka.requests, self.secrets.writes, self.known) == before

    def status(self, name: str = "etl") -> KafkaUserStatus:
        status = self.known["KafkaUser", "default", name].status
        assert isinstance(status, KafkaUserStatus)
        return status

    def condition(self, kind: str = "Ready", name: str = "etl") -> Condition | None:
        return self.status(name).condition(kind)

    def reason(self, name: str = "etl") -> str:
        condition = self.condition("Ready", name)
        assert condition is not None
        return condition.reason

    def texts(self, name: str = "etl") -> dict[str, str]:
        return dict(self.secrets.kept["default", name].texts)

    def delete(self, name: str = "etl", kind: str = "KafkaUser") -> Outcome:
        resource = self.known[kind, "default", name]
        return self.look(resource.replaced({"metadata": resource.metadata.replaced({"deletion_timestamp": NOW})}))


def logs_in(scene: Scene, name: str = "etl", mechanism: str = "SCRAM-SHA-512", secret: str | None = None) -> bool:
    """Whether the password in the Secret is the one in Kafka."""
    _, password = scene.kafka.passwords.get((name, mechanism), (0, ""))
    return password == scene.texts(secret or name)["password"]
