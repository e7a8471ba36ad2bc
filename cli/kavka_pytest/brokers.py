"""What a test has of brokers, wherever they run: `Kafka`, with the proxy in front of them that plays its faults."""

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Final, NoReturn, Self
from uuid import uuid4

from kavka_pytest.faults import Faults
from kavka_pytest.loop_thread import LoopThread
from kavka_pytest.proxy import Proxy

Leader = str | tuple[str, int]
"""A topic, of which the first partition is meant, or a topic and a partition."""

CLOSE_SECONDS_MAX: Final = 30.0


class KafkaError(Exception):
    """Brokers did not do what a test asked of them; the message says what to do."""


class Kafka(ABC):
    """A running Kafka. Where a client wants bootstrap servers, `str(kafka)` is them as well."""

    where = ""
    """Where the brokers run, for messages."""

    def __init__(self, name: str) -> None:
        self.faults = Faults()
        self.threads = LoopThread(name)
        self._proxy: Proxy | None = None
        self._bootstrap_servers = ""

    def __enter__(self) -> Self:
        self.threads.start()
        try:
            servers = self._start()
            self._bootstrap_servers = self.threads.run(self._open_proxy(servers))
        except BaseException:
            self.stop()
            raise
        opened.append(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def __str__(self) -> str:
        return self.bootstrap_servers

    @property
    def bootstrap_servers(self) -> str:
        """The addresses for clients: host:port, separated by commas."""
        return self._bootstrap_servers

    @property
    @abstractmethod
    def metrics(self) -> list[str]:
        """The URLs of the brokers' metrics pages."""

    @property
    def log(self) -> str:
        """The messages of the brokers, as far as they are known."""
        return ""

    def topic(self, name: str | None = None, *, partitions: int = 1, **config: str | int) -> str:
        """Make a topic, by default under a name that no other test has; returns its name. `config` are topic configs,
        with underscores for dots: `retention_ms=1000`.
        """
        name = name or f"test-{uuid4().hex[:12]}"
        self._create(name, partitions, {key.replace("_", "."): str(value) for key, value in config.items()})
        return name

    @abstractmethod
    def leader(self, topic: str, partition: int = 0) -> int:
        """The node that leads a partition."""

    def kill(self, node: int | None = None, *, leader_of: Leader | None = None) -> int:
        """Kill a broker (SIGKILL): a node, or the leader of a topic's first partition, or of (topic, partition). It is
        started again after a tenth of a second. Returns the node.
        """
        cannot(self, "be killed")

    def pause(self, node: int | None = None, *, leader_of: Leader | None = None) -> int:
        """Have a broker do nothing until `resume` (SIGSTOP), as where its machine hangs. Returns the node."""
        cannot(self, "be paused, only seem so (faults.black_hole())")

    def resume(self, node: int) -> None:
        """Let a broker go on that was paused."""
        cannot(self, "be paused and resumed")

    def cut(self, node: int | None = None, *, leader_of: Leader | None = None) -> int:
        """Cut clients off from a broker, until `mend` or the end of the test: their connections end, and new ones do.
        Other brokers reach it as before. Returns the node. Raises KafkaError where there is no such node.
        """
        node = self._node_of(node, leader_of)
        assert self._proxy is not None, "it runs"
        if not self.threads.run(self._proxy.cut(node)):
            raise KafkaError(f"there is no node {node}; there are {', '.join(map(str, sorted(self._proxy.brokers)))}")
        return node

    def isolate(self, node: int | None = None, *, leader_of: Leader | None = None) -> int:
        """Cut a broker off from the other brokers and controllers, until `mend` or the end of the test: connections
        between them end, and new ones do. Clients reach it as before. Returns the node.
        """
        cannot(self, "be isolated: it knows no other broker")

    def fill_disk(self, node: int | None = None, *, leader_of: Leader | None = None) -> int:
        """Leave a broker no room on its disk, until `mend` or the end of the test: what it would write fails with
        ENOSPC, and what it has stays readable. Nothing is written for it. Returns the node.
        """
        cannot(self, "have its disk filled")

    def mend(self, node: int) -> None:
        """Take from a broker what `cut`, `isolate` and `fill_disk` did to it."""
        assert self._proxy is not None, "it runs"
        self.threads.run(self._proxy.mend(node))

    @abstractmethod
    def restart(self) -> None:
        """Restart all brokers one by one, as in an upgrade: by controlled shutdown. Returns once all are back."""

    def throttle(self, client_id: str, *, produce: str | None = None, fetch: str | None = None) -> None:
        """Limit the rate of a client on each broker, in bytes a second as resources write them: `produce="1Mi"`."""
        self._limit(client_id, {"producerByteRate": produce, "consumerByteRate": fetch})

    def stop(self) -> None:
        """Stop the brokers and remove their records. To be called twice is no error."""
        if self in opened:
            opened.remove(self)
        proxy, self._proxy = self._proxy, None
        try:
            if proxy is not None:
                self.faults.clear()
                self.threads.run(proxy.close(), CLOSE_SECONDS_MAX)
            self._stop()
        finally:
            self.threads.close()

    # --- where they run -----------------------------------------------------------------------------------------

    @abstractmethod
    def _start(self) -> str:
        """Start the brokers; returns their addresses. Raises KafkaError."""

    @abstractmethod
    def _stop(self) -> None:
        """Stop what has been started."""

    @abstractmethod
    def _create(self, name: str, partitions: int, config: dict[str, str]) -> None:
        """Make a topic. Raises KafkaError."""

    @abstractmethod
    def _limit(self, client_id: str, limits: dict[str, str | None]) -> None:
        """Set the quotas of a client id that are not None. Raises KafkaError."""

    def _node_of(self, node: int | None, leader_of: Leader | None) -> int:
        """The node that is named, or leads. Raises ValueError unless one of the two is given."""
        if (node is None) == (leader_of is None):
            raise ValueError("name a node, or leader_of=TOPIC")
        if node is not None:
            return node
        assert leader_of is not None, "one of the two is given"
        return self.leader(leader_of) if isinstance(leader_of, str) else self.leader(*leader_of)

    async def _open_proxy(self, servers: str) -> str:
        proxy = self._proxy = Proxy(self.faults)
        self.faults.when_cleared(lambda: self.threads.call(proxy.clear))
        pairs = (server.rpartition(":") for server in servers.split(","))
        ours = await proxy.start([(host, int(port)) for host, _, port in pairs])
        return ",".join(f"{host}:{port}" for host, port in ours)


def cannot(kafka: Kafka, what: str) -> NoReturn:
    """Raise KafkaError for what brokers cannot do where they run."""
    raise KafkaError(
        f"this broker runs {kafka.where} and cannot {what}; ask for the fixture kafka_process (one broker) or "
        "kafka_cluster (three), whose brokers are processes of their own"
    )


opened: list[Kafka] = []
"""Those that run in this process, whose faults end with the test."""
