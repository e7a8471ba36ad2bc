"""An admin client that tells of each action it carries out, so that nobody has to take quiescence on trust."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from kavka_operator.domain.observed import SeenAccess, SeenCluster, SeenDisk, Survey
from kavka_operator.domain.plan import KafkaAction
from kavka_operator.kafka.admin import Admin, AdminError


@dataclass(frozen=True, slots=True)
class CountedAdmin:
    """An `Admin`; `wrote` is told the kind of each action that Kafka has accepted."""

    admin: Admin
    wrote: Callable[[str], None]

    def look(self, topics: Iterable[str]) -> SeenCluster:
        """As `Admin.look`. Raises AdminError."""
        return self.admin.look(topics)

    def survey(self) -> Survey:
        """As `Admin.survey`. Raises AdminError."""
        return self.admin.survey()

    def records(self, topic: str) -> int:
        """As `Admin.records`. Raises AdminError."""
        return self.admin.records(topic)

    def rates(self, brokers: Iterable[int]) -> Mapping[int, Mapping[str, str]]:
        """As `Admin.rates`. Raises AdminError."""
        return self.admin.rates(brokers)

    def disks(self, brokers: Iterable[int]) -> Mapping[int, tuple[SeenDisk, ...]]:
        """As `Admin.disks`. Raises AdminError."""
        return self.admin.disks(brokers)

    def access(self, brokers: Iterable[int]) -> SeenAccess:
        """As `Admin.access`. Raises AdminError."""
        return self.admin.access(brokers)

    def perform(self, action: KafkaAction) -> None:
        """As `Admin.perform`. Raises AdminError."""
        self.admin.perform(action)
        self.wrote(type(action).__name__)

    def check(self, action: KafkaAction) -> None:
        """As `Admin.check`. Raises AdminError."""
        self.admin.check(action)

    def perform_many(self, actions: Sequence[KafkaAction]) -> list[AdminError | None]:
        """As `Admin.perform_many`. Raises AdminError."""
        outcomes = self.admin.perform_many(actions)
        for action, fault in zip(actions, outcomes, strict=True):
            if fault is None:
                self.wrote(type(action).__name__)
        return outcomes

    def close(self) -> None:
        """As `Admin.close`."""
        self.admin.close()
