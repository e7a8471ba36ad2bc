"""One fetcher a leader: partitions move between them as leaders change.

A fetcher belongs to a broker at an address; when a leader comes back elsewhere its partitions get a new fetcher. There
are never more of them than brokers that lead something we follow: one without partitions is stopped.
"""

import asyncio
from collections.abc import Callable, Iterator

from kavka_broker.core.config.broker import BrokerConfig
from kavka_broker.core.metadata.image.brokers import Brokers
from kavka_broker.interfaces import Clock
from kavka_broker.logs import get
from kavka_broker.loop.timers import Timers
from kavka_broker.peers import Peers
from kavka_broker.replica.following.fetcher import Fetcher, FetchSettings
from kavka_broker.replica.leading.partition import Partition
from kavka_broker.replica.leading.throttles import Throttles
from kavka_broker.storage.log import Log

log = get("replica")

Address = tuple[str, int]
Source = tuple[int, Address]  # a leader, and where it listens
Place = tuple[bytes, int]  # topic id, index


class Fetchers:
    """All fetchers of this broker. `follow` and `leave` are called at every change of a partition's role."""

    def __init__(
        self,
        brokers: Brokers,
        peers: Peers,
        settings: FetchSettings,
        listener: str,
        clock: Clock,
        timers: Timers,
        crash: Callable[[BaseException], None],
    ) -> None:
        self._brokers = brokers
        self._peers = peers
        self._settings = settings
        self._listener = listener
        self._clock = clock
        self._timers = timers
        self._crash = crash
        self._fetchers: dict[Source, Fetcher] = {}
        self._at: dict[Place, tuple[Source, int]] = {}  # by partition: the leader it follows, at which leader epoch
        self._stopping: dict[asyncio.Task[None], None] = {}

    def __len__(self) -> int:
        return len(self._fetchers)

    def __iter__(self) -> Iterator[Fetcher]:
        return iter(self._fetchers.values())

    def follow(self, partition: Partition) -> None:
        """Fetch the partition, a follower, from its present leader at its present epoch."""
        source = self._source(partition.state.leader)
        wanted = None if source is None else (source, partition.leader_epoch)
        place = (partition.topic_id, partition.index)
        at = self._at.get(place)
        if at == wanted:
            return
        if at is not None and at[0] == source and wanted is not None:
            self._at[place] = wanted
            self._fetchers[at[0]].renew(partition)
            return
        self.leave(partition)
        if source is None or wanted is None:
            return
        fetcher = self._fetchers.get(source)
        if fetcher is None:
            fetcher = self._fetchers[source] = self._open(source)
        self._at[place] = wanted
        fetcher.add(partition)

    def leave(self, partition: Partition) -> None:
        """Stop fetching the partition: it leads now, or is gone."""
        place = (partition.topic_id, partition.index)
        at = self._at.pop(place, None)
        if at is None:
            return
        fetcher = self._fetchers[at[0]]
        fetcher.remove(partition)
        if not len(fetcher):
            del self._fetchers[at[0]]
            self._stop(fetcher)

    async def stop(self) -> None:
        fetchers = list(self._fetchers.values())
        self._fetchers.clear()
        self._at.clear()
        await asyncio.gather(*(fetcher.stop() for fetcher in fetchers), *self._stopping)

    def _source(self, leader_id: int) -> Source | None:
        registration = self._brokers.get(leader_id)
        if registration is None:
            return None
        endpoint = registration.endpoints.get(self._listener)
        if endpoint is None:
            log.warning("leader_listener.not_found", leader=leader_id, listener=self._listener)
            return None
        return leader_id, (endpoint.host, endpoint.port)

    def _open(self, source: Source) -> Fetcher:
        leader_id, (host, port) = source
        peer = self._peers.to(host, port, client_id=f"broker-{self._settings.node_id}-fetcher-0")
        return Fetcher(leader_id, peer, self._settings, self._clock, self._timers, self._crash)

    def _stop(self, fetcher: Fetcher) -> None:
        task = asyncio.get_running_loop().create_task(fetcher.stop())
        self._stopping[task] = None
        task.add_done_callback(lambda done: self._stopping.pop(done, None))


def fetch_settings(
    node_id: int,
    config: BrokerConfig,
    broker_epoch: Callable[[], int],
    throttles: Throttles,
    when_secured: Callable[[Log], "asyncio.Future[None] | None"],
) -> FetchSettings:
    """Return the settings of `replica.fetch.*`."""
    return FetchSettings(
        node_id,
        broker_epoch,
        wait_ms_max=config["replica.fetch.wait.max.ms"],
        bytes_min=config["replica.fetch.min.bytes"],
        bytes_max=config["replica.fetch.response.max.bytes"],
        partition_bytes_max=config["replica.fetch.max.bytes"],
        backoff_ms_max=config["replica.fetch.backoff.ms"],
        timeout_ms=config["replica.socket.timeout.ms"],
        took=throttles.took,
        held_back=throttles.must_wait,
        when_secured=when_secured,
    )
