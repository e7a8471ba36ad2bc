"""A Kafka that runs already, Apache Kafka for one, with a proxy in front of it that plays the faults of a test."""

from kavka_pytest.brokers import Kafka, cannot
from kavka_pytest.processes import ask


class ExternalKafka(Kafka):
    """Brokers that run already, with a listener without TLS and login."""

    where = "outside of the fixtures"

    def __init__(self, bootstrap_servers: str) -> None:
        super().__init__(f"kafka at {bootstrap_servers}")
        self._servers = bootstrap_servers

    @property
    def metrics(self) -> list[str]:
        return []

    def leader(self, topic: str, partition: int = 0) -> int:
        return int(ask(self._servers, {"leaders": topic})[str(partition)])

    def restart(self) -> None:
        cannot(self, "be restarted")

    def _start(self) -> str:
        return self._servers

    def _stop(self) -> None:
        """They go on without us."""

    def _create(self, name: str, partitions: int, config: dict[str, str]) -> None:
        ask(self._servers, {"create": name, "partitions": partitions, "configs": config})

    def _limit(self, client_id: str, limits: dict[str, str | None]) -> None:
        cannot(self, f"limit the client {client_id}")
