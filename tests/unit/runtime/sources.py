"""A broker's worth of figures without a broker."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

from kavka_broker.coordinator.groups.group_lag import Figures
from kavka_broker.coordinator.share.share_counts import CountsByTopic
from kavka_broker.core.authentication.auth_metrics import Authentications
from kavka_broker.core.group.lag import GroupTopicLag
from kavka_broker.core.metadata.image.configs import Configs
from kavka_broker.core.quota.entity import IpEntity
from kavka_broker.core.quota.rate import SampleWindow
from kavka_broker.core.share.share_partition import Acquired
from kavka_broker.core.share.state_batches import StateBatch
from kavka_broker.core.streams_group.state import StreamsGroup
from kavka_broker.core.telemetry.otlp import Kind, Point
from kavka_broker.core.telemetry.series import Source
from kavka_broker.core.transaction.state import TransactionState
from kavka_broker.core.transaction.state_counts import Census
from kavka_broker.dispatch.dispatcher import ApiStats
from kavka_broker.loop.turns import Turns
from kavka_broker.net.connection_rates import ConnectionRates
from kavka_broker.quotas.client_quotas import ClientQuotas
from kavka_broker.replica.hosting.log_cleaner import LogCleaner
from kavka_broker.replica.leading.throttles import Throttle
from kavka_broker.runtime.health import STARTING, Health
from kavka_broker.runtime.metric_sources import Sources
from kavka_broker.runtime.watchdog import Watchdog
from kavka_broker.storage.log_manager import LogManager
from kavka_broker.telemetry.client_metrics import ClientMetrics
from kavka_broker.telemetry.forward import Forward
from tests.support.sim_disk import SimDisk


class StoppedClock:
    def now_ms(self) -> int:
        return 1_760_000_000_000

    def monotonic_ms(self) -> float:
        return 5000.0


def throttles() -> dict[str, Throttle]:
    """Of each kind, with bytes of its own."""
    made = {}
    for number, kind in enumerate(("leader", "follower", "alterlogdirs"), 1):
        made[kind] = Throttle(SampleWindow(), lambda: 1.0, StoppedClock())
        made[kind].record(number * 1000)
    return made


def rates() -> ConnectionRates:
    """Five connections of one address have come at the stopped time."""
    made = ConnectionRates()
    made.join("PLAINTEXT")
    made.limit_addresses({IpEntity("192.0.2.7"): 10.0})
    for _ in range(5):
        made.take("PLAINTEXT", 5000)
        made.admit("PLAINTEXT", "192.0.2.7", 5000)
    return made


def partition(topic: str, index: int, isr: Sequence[int] = (1,), replicas: Sequence[int] = (1,)) -> Any:
    log = SimpleNamespace(
        size_bytes=700, log_start_offset=3, log_end_offset=10, config=SimpleNamespace(min_insync_replicas=2)
    )
    state = SimpleNamespace(leader=1, isr=list(isr), replicas=list(replicas))
    traffic = SimpleNamespace(bytes_in=100, bytes_out=50, bytes_copied=30, messages_in=7, produces=4, fetches=2)
    # Those in sync have all, the others have not fetched yet.
    followers = {one: SimpleNamespace(log_end_offset=10 if one in isr else -1) for one in replicas if one != 1}
    leadership = SimpleNamespace(followers=followers)
    return SimpleNamespace(
        topic=topic, index=index, is_leader=True, state=state, log=log, leadership=leadership, traffic=traffic
    )


def watchdog() -> Watchdog:
    watched = Watchdog()
    watched.held["Connection Metadata"] = (2, 0.05)
    return watched


def turns() -> Turns:
    """Of a loop on which a client has had a turn."""
    taken = Turns()
    taken.charge(taken.join("alice", "etl"), taken.quantum_ns // 2)
    taken.charge(taken.join("alice", "é" * 256), 1)
    return taken


def cleaner_over(logs: LogManager) -> LogCleaner:
    """One that has cleaned a log."""
    cleaner = LogCleaner(
        logs,
        StoppedClock(),
        config=lambda: cast(Any, {}),
        stable_offset_of=lambda one: one.log_end_offset,
        crash=lambda error: None,
    )
    cleaner.figures.runs_total, cleaner.figures.bytes_read_total, cleaner.figures.recopy_ratio = 1, 300, 0.25
    return cleaner


def pushed() -> ClientMetrics:
    """Client metrics to which a client has pushed a level and a flow."""
    metrics = ClientMetrics(
        1000, Configs(), StoppedClock(), lambda: b"\1" * 16, Forward("http://collector:4318", lambda *_: None)
    )
    points = (Point("org.apache.kafka.lag", Kind.LEVEL, 3.0), Point("org.apache.kafka.sent", Kind.DELTA, 8.0))
    metrics.series.take(Source("app", "java/4.3"), b"\1" * 16, points, 1000, 5000)
    metrics.results["NONE"] = metrics.asks["NONE"] = 1
    return metrics


def coordinated() -> Any:
    """A coordinator with a transaction that has been open for a second and a half."""
    census = Census({TransactionState.ONGOING: 2, TransactionState.COMPLETE_COMMIT: 5}, StoppedClock().now_ms() - 1_500)
    markers = SimpleNamespace(unknown_destinations=3)
    return SimpleNamespace(
        shards=lambda: [SimpleNamespace(census=census, incomplete=2)],
        aborted={"timeout": 1, "fenced": 0},
        markers=markers,
        late_requests=SimpleNamespace(refused=2),
    )


def shared() -> Any:
    """The share groups of a broker: two share partitions, one of which is not read yet."""
    by_topic = CountsByTopic()
    counts = by_topic.of("workers", "work")
    counts.acquired([Acquired(0, 9, 1), Acquired(10, 14, 2)])
    counts.ended([StateBatch(0, 6, 2, 1), StateBatch(7, 7, 4, 5), StateBatch(8, 9, 0, 1)])
    counts.expired([StateBatch(8, 9, 0, 1)])
    partition = SimpleNamespace(topic="work", high_watermark=60, log=SimpleNamespace(log_start_offset=0))
    oldest = 20, StoppedClock().now_ms() - 7_500
    leaders = [
        SimpleNamespace(window=window, counts=counts, partition=partition, oldest=oldest)
        for window in (SimpleNamespace(in_flight=15, start_offset=20), None)
    ]
    sessions = SimpleNamespace(by_key={"a": None, "b": None, "c": None})
    return SimpleNamespace(
        fetches=SimpleNamespace(share_partitions=leaders, sessions=sessions, counts=by_topic),
        coordinator=SimpleNamespace(shards=[SimpleNamespace(states=SimpleNamespace(by_key={1: None, 2: None}))] * 2),
    )


def coordinated_groups() -> Any:
    """The streams groups of a broker: two without members, after three epochs."""
    streams = SimpleNamespace(all=lambda: [StreamsGroup("a"), StreamsGroup("b")])
    return SimpleNamespace(shards=lambda: [SimpleNamespace(streams=streams)], streams_rebalances_total=3)


def sources(partitions: Sequence[Any] = (), **others: Any) -> Sources:
    listener = SimpleNamespace(
        name="PLAINTEXT",
        connections=(SimpleNamespace(is_muted=True), SimpleNamespace(is_muted=False)),
        accepted_count=5,
        refused_count=1,
        received_bytes=1000,
        sent_bytes=2000,
        rates=rates(),
        authentications=Authentications(8, 7, 3, 6, 2, 5),
        clock=SimpleNamespace(monotonic_ms=lambda: 9_500.0),
        sasl=SimpleNamespace(
            tokens=SimpleNamespace(keys_read_ms=2_000.0, settings=SimpleNamespace(refresh_ms=3_600_000))
        ),
    )
    topic = SimpleNamespace(
        partitions={0: SimpleNamespace(leader=1, replicas=(1, 2)), 1: SimpleNamespace(leader=-1, replicas=(1,))}
    )
    brokers = [SimpleNamespace(fenced=False), SimpleNamespace(fenced=True)]
    quorum = SimpleNamespace(leader_id=1, epoch=3, high_watermark=11, log_end_offset=12, voters=(1, 2, 3))
    stats = ApiStats()
    stats.requests, stats.errors, stats.seconds = 3, 1, 0.5
    stats.by_duration[:3] = [2, 0, 1]
    counts = SimpleNamespace(isr_shrinks=4, isr_expands=3, elections=7, unclean_elections=1)
    measured = GroupTopicLag(0, "readers", "orders", (7, 5), (2.0, 1.0))
    lag = SimpleNamespace(figures=Figures(0, [measured], 3), age_ms=lambda _: 4_000)
    parts: dict[str, Any] = {
        "lag": lag,
        "node_id": 1,
        "cluster_id": "abc",
        "clock": StoppedClock(),
        "health": Health(STARTING),
        "metadata": cast(Any, SimpleNamespace(topics=[topic], brokers=brokers)),
        "quotas": ClientQuotas(),
        "requests": [("Produce", stats)],
        "listeners": [listener],
        "partitions": partitions,
        "is_active_controller": lambda: True,
        "quorum": quorum,
        "counts": counts,
        "logs": (logs := LogManager(SimDisk(), "abc", [])),
        "watchdog": watchdog(),
        "turns": turns(),
        "cleaner": cleaner_over(logs),
        "transactions": coordinated(),
        "sharing": shared(),
        "groups": coordinated_groups(),
        "client_metrics": pushed(),
        "auditing": SimpleNamespace(
            written_total=9,
            failures_total=3,
            last_written_ms=1_500,
            is_refusing=True,
            refused={"produce": 5},
            journal=SimpleNamespace(
                dropped_total=2, waiting=4, usage=0.5, told={"denied": 6}, refusal_events={"User:" + "é" * 100: 3}
            ),
        ),
        "throttles": throttles(),
        "failed_assertions_total": 2,
    }
    return Sources(**{**parts, **others})
