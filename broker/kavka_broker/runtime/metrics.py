"""The broker's figures in Prometheus' text format.

Nothing is counted here: the parts of the broker keep plain numbers, and a scrape reads them. Series that grow with
names that clients choose are bounded, and `kavka_series_omitted` says how many are not shown; clients beyond the bound
are summed up under `__other__` (see `quotas.byte_quota`).

The library that writes the format costs 7 MiB, so it and this page are imported by the first scrape
(docs/adr/0005). One family is rendered at a time, and requests are served in between.
"""

import asyncio
import platform
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from importlib import import_module
from importlib.metadata import version
from itertools import accumulate, islice
from typing import TYPE_CHECKING, Final

from kavka_broker.api.dispatch import ApiStats
from kavka_broker.controller.quorum import Quorum
from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.core.partition.high_watermark import effective_min_isr
from kavka_broker.net.listener import Listener
from kavka_broker.quotas.byte_quota import DELAY_BUCKETS_MS, ByteQuota
from kavka_broker.quotas.sensor import Usage
from kavka_broker.replica.hosting.log_cleaner import LogCleaner
from kavka_broker.replica.leading.partition import Partition
from kavka_broker.runtime.cluster_counts import ClusterCounts
from kavka_broker.runtime.metric_table import FAMILIES, Family, Kind
from kavka_broker.runtime.sources import Sources
from kavka_broker.runtime.watchdog import Watchdog
from kavka_broker.storage.log_manager import LogManager
from kavka_broker.storage.names import DELETE_DIRECTORY, STRAY_DIRECTORY

if TYPE_CHECKING:
    from prometheus_client import Metric

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
TOPIC_SERIES_MAX: Final = 500
PARTITION_SERIES_MAX: Final = 1000

Sample = tuple[str, tuple[str, ...], float]  # name, values of its labels, value


async def render(sources: Sources) -> bytes:
    """Everything, as one page."""
    await asyncio.to_thread(import_module, "prometheus_client")  # 60 ms that the loop should not stand still
    from prometheus_client import generate_latest
    from prometheus_client.registry import Collector

    class One(Collector):
        """A registry's worth of one family."""

        def __init__(self, metric: "Metric") -> None:
            self._metric = metric

        def collect(self) -> Iterator["Metric"]:
            yield self._metric

    pages = []
    for metric in [*families(samples(sources)), *process_families()]:
        pages.append(generate_latest(One(metric)))
        await asyncio.sleep(0)
    return b"".join(pages)


def families(found: Iterable[Sample]) -> Iterator["Metric"]:
    """The samples under the families of the table, in its order; families without samples are left out."""
    from prometheus_client import Metric

    by_family: dict[str, list[Sample]] = {}
    for sample in found:
        by_family.setdefault(family_name(sample[0]), []).append(sample)
    for family in FAMILIES:
        if family.name in by_family:
            metric = Metric(family.name.removesuffix("_total"), family.help, family.kind)
            for name, values, value in by_family.pop(family.name):
                metric.add_sample(name, dict(zip(labels_of(family, name), values, strict=True)), value)
            yield metric
    assert not by_family, f"not in the table of metrics: {sorted(by_family)}"


def process_families() -> list["Metric"]:
    """Memory, CPU, open files and start time of this process."""
    from prometheus_client import CollectorRegistry, ProcessCollector

    return list(ProcessCollector(registry=CollectorRegistry()).collect())


def family_name(name: str) -> str:
    for suffix in ("_bucket", "_sum", "_count"):
        if name.removesuffix(suffix) in HISTOGRAMS:
            return name.removesuffix(suffix)
    return name


def labels_of(family: Family, name: str) -> tuple[str, ...]:
    return (*family.labels, "le") if name.endswith("_bucket") else family.labels


HISTOGRAMS: Final = {family.name for family in FAMILIES if family.kind is Kind.HISTOGRAM}


def samples(sources: Sources) -> Iterator[Sample]:
    """Every figure, in no particular order."""
    yield "kavka_build_info", (version("kavka-broker"), platform.python_version()), 1
    yield "kavka_broker_info", (str(sources.node_id), sources.cluster_id), 1
    yield "kavka_broker_ready", (), int(sources.health.is_ready)
    yield from memory_samples()
    yield from loop_samples(sources.watchdog)
    for quota_type, quota in sources.quotas.by_type.items():
        yield from quota_samples(quota_type, quota, int(sources.clock.monotonic_ms()))
    yield from request_samples(sources.requests)
    for listener in sources.listeners:
        yield from listener_samples(listener)
    partitions = list(sources.partitions)
    yield from replica_samples(partitions)
    yield from topic_samples(partitions)
    yield from log_samples(partitions)
    yield from directory_samples(sources.logs)
    if sources.cleaner is not None:
        yield from cleaner_samples(sources.cleaner, sources.logs, sources.clock.now_ms())
    yield from controller_samples(sources.metadata, is_active=sources.is_active_controller())
    yield from quorum_samples(sources.quorum)
    yield from count_samples(sources.counts)


def request_samples(counted: Iterable[tuple[str, ApiStats]]) -> Iterator[Sample]:
    totals: dict[str, list[float]] = {}
    for api, stats in counted:
        if stats.requests:
            total = totals.setdefault(api, [0, 0, 0])
            for index, value in enumerate((stats.requests, stats.errors, stats.seconds)):
                total[index] += value
    for api, (requests, errors, seconds) in totals.items():
        yield "kavka_requests_total", (api,), requests
        yield "kavka_request_errors_total", (api,), errors
        yield "kavka_request_seconds_total", (api,), seconds


def memory_samples() -> Iterator[Sample]:
    """What is really taken from the machine; nothing where the system does not say."""
    with suppress(OSError), open("/proc/self/status", encoding="ascii") as status:
        for line in status:
            if line.startswith("RssAnon:"):
                yield "kavka_memory_anonymous_bytes", (), int(line.split()[1]) * 1024


def loop_samples(watchdog: Watchdog) -> Iterator[Sample]:
    for name, (count, seconds) in watchdog.held.items():
        yield "kavka_loop_held_total", (name,), count
        yield "kavka_loop_held_seconds_total", (name,), seconds


def quota_samples(quota_type: str, quota: ByteQuota, now_ms: int) -> Iterator[Sample]:
    for usage in quota.usages(now_ms):
        client = (usage.user, usage.client_id)
        labels = (*client, quota_type)
        yield "kavka_client_bytes_total", labels, usage.bytes_total
        yield "kavka_client_throttle_seconds_total", labels, usage.held_ms_total / 1000
        yield "kavka_client_throttled_requests_total", labels, usage.throttled_requests_total
        yield from limit_samples(usage, labels)
        if usage.byte_rate is not None:
            yield f"kafka_server_{quota_type}_byte_rate", client, usage.byte_rate
            yield f"kafka_server_{quota_type}_throttle_time", client, usage.throttle_ms_average
    yield "kavka_client_label_overflow_total", (quota_type,), quota.overflows_total
    yield from delay_samples(quota_type, quota)


def limit_samples(usage: Usage, labels: tuple[str, ...]) -> Iterator[Sample]:
    if usage.effective is not None:
        where = (str(usage.effective.level), str(usage.effective.entity))
        yield "kavka_client_quota_limit_bytes_per_second", (*labels, *where), usage.effective.limit


def delay_samples(quota_type: str, quota: ByteQuota) -> Iterator[Sample]:
    bounds = [*(str(bound_ms / 1000) for bound_ms in DELAY_BUCKETS_MS), "+Inf"]
    counts = list(accumulate(quota.delay_counts))
    for bound, count in zip(bounds, counts, strict=True):
        yield "kavka_throttle_duration_seconds_bucket", (quota_type, bound), count
    yield "kavka_throttle_duration_seconds_count", (quota_type,), counts[-1]
    yield "kavka_throttle_duration_seconds_sum", (quota_type,), quota.delay_ms_total / 1000


def listener_samples(listener: Listener) -> Iterator[Sample]:
    label = (listener.name,)
    yield "kavka_connections", label, len(listener.connections)
    yield "kavka_connections_throttled", label, sum(connection.is_muted for connection in listener.connections)
    yield "kavka_connections_accepted_total", label, listener.accepted_count
    yield "kavka_connections_refused_total", label, listener.refused_count
    yield "kavka_network_received_bytes_total", label, listener.received_bytes
    yield "kavka_network_sent_bytes_total", label, listener.sent_bytes


def replica_samples(partitions: Sequence[Partition]) -> Iterator[Sample]:
    prefix = "kafka_server_replicamanager_"
    led = [partition for partition in partitions if partition.is_leader]
    yield f"{prefix}partitioncount", (), len(partitions)
    yield f"{prefix}leadercount", (), len(led)
    yield f"{prefix}underreplicatedpartitions", (), sum(len(p.state.isr) < len(p.state.replicas) for p in led)
    spare = [len(partition.state.isr) - min_isr(partition) for partition in led]
    yield f"{prefix}underminisrpartitioncount", (), sum(count < 0 for count in spare)
    yield f"{prefix}atminisrpartitioncount", (), sum(count == 0 for count in spare)
    for follower_id, lag in sorted(lags(led).items()):
        yield "kavka_replica_lag_records_max", (str(follower_id),), lag


def min_isr(partition: Partition) -> int:
    return effective_min_isr(partition.log.config.min_insync_replicas, len(partition.state.replicas))


def lags(led: Iterable[Partition]) -> dict[int, int]:
    """By follower, how much it lacks of the partition that it lacks most of. One that is dead lags as well, and more
    and more: so this is looked at from the leader's side.
    """
    found: dict[int, int] = {}
    for partition in led:
        log = partition.log
        for follower_id, follower in partition.leadership.followers.items() if partition.leadership else ():
            lag = max(0, log.log_end_offset - max(follower.log_end_offset, log.log_start_offset))
            found[follower_id] = max(lag, found.get(follower_id, 0))
    return found


def topic_samples(partitions: Sequence[Partition]) -> Iterator[Sample]:
    topics: dict[str, list[int]] = {}
    for partition in partitions:
        totals = topics.setdefault(partition.topic, [0, 0, 0])
        totals[0] += partition.bytes_in
        totals[1] += partition.bytes_out
        totals[2] += partition.messages_in
    for topic, (bytes_in, bytes_out, messages_in) in islice(topics.items(), TOPIC_SERIES_MAX):
        yield "kafka_server_brokertopicmetrics_bytesin_total", (topic,), bytes_in
        yield "kafka_server_brokertopicmetrics_bytesout_total", (topic,), bytes_out
        yield "kafka_server_brokertopicmetrics_messagesin_total", (topic,), messages_in
    yield "kavka_series_omitted", ("topic",), max(0, len(topics) - TOPIC_SERIES_MAX)


def log_samples(partitions: Sequence[Partition]) -> Iterator[Sample]:
    for partition in partitions[:PARTITION_SERIES_MAX]:
        labels, log = (partition.topic, str(partition.index)), partition.log
        yield "kafka_log_log_size", labels, log.size_bytes
        yield "kafka_log_log_logstartoffset", labels, log.log_start_offset
        yield "kafka_log_log_logendoffset", labels, log.log_end_offset
    yield "kavka_series_omitted", ("partition",), max(0, len(partitions) - PARTITION_SERIES_MAX)


def directory_samples(logs: LogManager) -> Iterator[Sample]:
    offline = [directory for directory in logs.directories if not directory.is_online]
    yield "kafka_log_logmanager_offlinelogdirectorycount", (), len(offline)
    for directory in logs.directories:
        for suffix in (DELETE_DIRECTORY, STRAY_DIRECTORY):
            labels = directory.path, suffix.removeprefix("-")
            number, size_bytes = logs.aside.count(directory, suffix)
            yield "kavka_set_aside_logs", labels, number
            yield "kavka_set_aside_bytes", labels, size_bytes


def cleaner_samples(cleaner: LogCleaner, logs: LogManager, now_ms: int) -> Iterator[Sample]:
    figures = cleaner.figures
    of_runs, of_logs = "kafka_log_logcleaner_", "kafka_log_logcleanermanager_"
    yield f"{of_runs}max_buffer_utilization_percent", (), round(100 * figures.map_utilization)
    yield f"{of_runs}cleaner_recopy_percent", (), round(100 * figures.recopy_ratio)
    yield f"{of_runs}max_clean_time_secs", (), figures.clean_ms / 1000
    yield f"{of_runs}max_compaction_delay_secs", (), figures.overdue_ms_max / 1000
    yield f"{of_logs}max_dirty_percent", (), round(100 * figures.dirty_ratio_max)
    yield "kavka_cleaner_since_last_run_seconds", (), (now_ms - figures.looked_ms) / 1000
    for directory in logs.directories:
        left = [one for one in cleaner.uncleanable if logs.directory_of(*one.name) is directory]
        yield "kavka_cleaner_uncleanable_partitions", (directory.path,), len(left)
        yield f"{of_logs}uncleanable_bytes", (directory.path,), sum(one.size_bytes for one in left)
    yield "kavka_cleaner_runs_total", (), figures.runs_total
    yield "kavka_cleaner_read_bytes_total", (), figures.bytes_read_total
    yield "kavka_cleaner_written_bytes_total", (), figures.bytes_written_total
    yield "kavka_cleaner_progress_ratio", (), cleaner.progress


def controller_samples(metadata: Metadata, *, is_active: bool) -> Iterator[Sample]:
    prefix = "kafka_controller_kafkacontroller_"
    states = [state for topic in metadata.topics for state in topic.partitions.values()]
    fenced = sum(broker.fenced for broker in metadata.brokers)
    yield f"{prefix}activecontrollercount", (), int(is_active)
    yield f"{prefix}globaltopiccount", (), len(metadata.topics)
    yield f"{prefix}globalpartitioncount", (), len(states)
    yield f"{prefix}offlinepartitionscount", (), sum(state.leader < 0 for state in states)
    yield f"{prefix}preferredreplicaimbalancecount", (), sum(state.leader != state.replicas[0] for state in states)
    yield f"{prefix}activebrokercount", (), len(metadata.brokers) - fenced
    yield f"{prefix}fencedbrokercount", (), fenced


def quorum_samples(quorum: Quorum) -> Iterator[Sample]:
    prefix = "kafka_server_raft_metrics_"
    yield f"{prefix}current_leader", (), quorum.leader_id
    yield f"{prefix}current_epoch", (), quorum.epoch
    yield f"{prefix}high_watermark", (), quorum.high_watermark
    yield f"{prefix}log_end_offset", (), quorum.log_end_offset
    yield f"{prefix}number_of_voters", (), len(quorum.voters)


def count_samples(counts: ClusterCounts) -> Iterator[Sample]:
    yield "kafka_server_replicamanager_isrshrinks_total", (), counts.isr_shrinks
    yield "kafka_server_replicamanager_isrexpands_total", (), counts.isr_expands
    yield "kafka_controller_controllerstats_leaderelections_total", (), counts.elections
    yield "kafka_controller_controllerstats_uncleanleaderelections_total", (), counts.unclean_elections
