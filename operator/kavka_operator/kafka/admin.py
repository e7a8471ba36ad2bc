"""What the operator asks of a Kafka cluster: look, and carry out an action. Reconcilers are tested without it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from kavka_operator.domain.access import OPEN, Security
from kavka_operator.domain.observed import SeenAccess, SeenCluster, SeenDisk, Survey
from kavka_operator.domain.plan import KafkaAction


class AdminError(Exception):
    """The cluster refused or did not answer. The message is for a person; `retriable` says whether time may help."""

    def __init__(self, message: str, *, retriable: bool = False) -> None:
        super().__init__(message)
        self.retriable = retriable


class BarredError(AdminError):
    """The cluster must not be touched, or does not let us in, until a person does something. `reason` is one word."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class ThrottledError(AdminError):
    """A limit on changes holds the operator for a while; nothing is wrong, and time alone helps."""

    def __init__(self, message: str) -> None:
        super().__init__(message, retriable=True)


class Admin(Protocol):
    """A cluster's admin protocol. Every method may raise AdminError."""

    def look(self, topics: Iterable[str]) -> SeenCluster:
        """The cluster, with those of `topics` that exist, and every quota."""
        ...

    def survey(self) -> Survey:
        """Every partition of every topic, and the controllers."""
        ...

    def records(self, topic: str) -> int:
        """The number of offsets between start and end of a topic's partitions."""
        ...

    def rates(self, brokers: Iterable[int]) -> Mapping[int, Mapping[str, str]]:
        """The rates of throttled replicas that are set for brokers, each by itself; those that answer."""
        ...

    def disks(self, brokers: Iterable[int]) -> Mapping[int, tuple[SeenDisk, ...]]:
        """The disks of brokers, as each tells its own; those that answer."""
        ...

    def access(self, brokers: Iterable[int]) -> SeenAccess:
        """The access to the cluster; `brokers` are asked where clients log in."""
        ...

    def perform(self, action: KafkaAction) -> None:
        """Carry out an action; doing it twice does no harm."""
        ...

    def check(self, action: KafkaAction) -> None:
        """Ask whether the cluster would accept an action, where it can check one without carrying it out."""
        ...

    def perform_many(self, actions: Sequence[KafkaAction]) -> list[AdminError | None]:
        """Carry out actions of one kind in as few requests as can be; what went wrong with each."""
        ...

    def close(self) -> None:
        """Let go of the connections."""
        ...


class Connect(Protocol):
    """Makes an admin client."""

    def __call__(self, bootstrap_servers: str, security: Security = OPEN, /) -> Admin:
        """An admin client of the cluster at these addresses. Raises AdminError."""
        ...
