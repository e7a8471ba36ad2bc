"""The parts of the broker that its admin pages look at, gathered once; the pages only read them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from kavka_broker.controller.quorum import Quorum
from kavka_broker.coordinator.groups.group_coordinator import GroupCoordinator
from kavka_broker.coordinator.groups.group_lag import GroupLag
from kavka_broker.coordinator.share.share_service import Sharing
from kavka_broker.coordinator.transactions.transaction_coordinator import TransactionCoordinator
from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.dispatch.dispatcher import ApiStats
from kavka_broker.interfaces import Clock
from kavka_broker.loop.turns import Turns
from kavka_broker.net.listener import Listener
from kavka_broker.quotas.client_quotas import ClientQuotas
from kavka_broker.replica.hosting.log_cleaner import LogCleaner
from kavka_broker.replica.leading.partition import Partition
from kavka_broker.replica.leading.throttles import Throttle
from kavka_broker.runtime.auditing import Auditing
from kavka_broker.runtime.cluster_counts import ClusterCounts
from kavka_broker.runtime.health import Health
from kavka_broker.runtime.loop_use import LoopUse
from kavka_broker.runtime.watchdog import Watchdog
from kavka_broker.storage.log_manager import LogManager
from kavka_broker.telemetry.client_metrics import ClientMetrics


@dataclass(slots=True)
class Sources:
    """Parts that a probe or a scrape looks at."""

    node_id: int
    cluster_id: str
    clock: Clock
    health: Health
    metadata: Metadata
    quotas: ClientQuotas
    requests: Sequence[tuple[str, ApiStats]]  # by the name of the API; brokers and controllers count apart
    listeners: Iterable[Listener]
    partitions: Iterable[Partition]
    is_active_controller: Callable[[], bool]
    quorum: Quorum
    counts: ClusterCounts
    logs: LogManager
    watchdog: Watchdog
    turns: Turns
    cleaner: LogCleaner | None  # of a broker, as the next
    transactions: TransactionCoordinator | None
    sharing: Sharing | None
    groups: GroupCoordinator | None
    client_metrics: ClientMetrics | None
    throttles: Mapping[str, Throttle]  # of replication, by kind
    failed_assertions_total: int  # before this process
    auditing: Auditing | None = None
    dashboards: Sequence[str] = ()  # whose names are served too (`kavka.metrics.names`)
    lag: GroupLag | None = None  # of groups that a broker coordinates
    loop_use: LoopUse = field(default_factory=LoopUse)
