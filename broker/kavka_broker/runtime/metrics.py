"""The broker's figures in Prometheus' text format.

Nothing is counted here: the parts of the broker keep plain numbers, and a scrape reads them. Series that grow with
names that clients choose are bounded, and `kavka_series_omitted` says how many are not shown; clients beyond the bound
are summed up under `__other__` (see `quotas.quota_shares`). What a broker has very many of is read in slices.

The library that writes the format costs 7 MiB, so it and this page are imported by the first scrape
(docs/adr/0005). Some samples are written at a time, and requests are served in between.
"""

import asyncio
import platform
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import suppress
from importlib import import_module
from importlib.metadata import version
from itertools import accumulate
from time import monotonic, thread_time
from typing import TYPE_CHECKING, Final

from kavka_broker.controller.quorum import Quorum
from kavka_broker.core.authentication.auth_metrics import Authentications
from kavka_broker.core.client_names import label_of
from kavka_broker.dispatch.dispatcher import DURATION_BOUNDS_S, ApiStats
from kavka_broker.loop.slices import Slices, Work
from kavka_broker.loop.turns import Turns
from kavka_broker.net.listener import Listener
from kavka_broker.quotas.callback_runner import QuotaCalls
from kavka_broker.quotas.client_quotas import FETCH, PRODUCE
from kavka_broker.quotas.entity_usage import EntityUsage
from kavka_broker.replica.hosting.log_cleaner import LogCleaner
from kavka_broker.runtime.auditing import Auditing
from kavka_broker.runtime.cluster_counts import ClusterCounts
from kavka_broker.runtime.dashboard_names import DASHBOARD_FAMILIES, OF_SOCKETS, dashboard_samples
from kavka_broker.runtime.lag_figures import lag_samples
from kavka_broker.runtime.loop_use import LoopUse
from kavka_broker.runtime.metric_sources import Sources
from kavka_broker.runtime.metric_table import FAMILIES
from kavka_broker.runtime.metric_tables.family import Family, Kind
from kavka_broker.runtime.partition_figures import Sample, controller_samples, partition_samples
from kavka_broker.runtime.quota_figures import (
    CONNECTION_CREATION,
    exempt_samples,
    observed_samples,
    quota_samples,
    throttle_samples,
)
from kavka_broker.runtime.share_figures import share_samples
from kavka_broker.runtime.streams_figures import streams_samples
from kavka_broker.runtime.telemetry_figures import telemetry_samples
from kavka_broker.runtime.transaction_figures import transaction_samples
from kavka_broker.runtime.watchdog import Watchdog
from kavka_broker.storage.file_names import DELETE_DIRECTORY, STRAY_DIRECTORY
from kavka_broker.storage.log_manager import LogManager

if TYPE_CHECKING:
    from prometheus_client import Metric

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
SAMPLES_PER_TURN: Final = 250
"""Written in a millisecond or two."""
ADDRESSES_SHOWN_MAX: Final = 50
HEAD_LINES: Final = 2
"""Of a family's page: its help and its type."""


async def render(sources: Sources) -> bytes:
    """Return all metrics as one page."""
    await asyncio.to_thread(import_module, "prometheus_client")  # takes 60 ms, which would hold the loop
    slices = Slices()
    by_family: dict[str, list[Sample]] = {}
    found = await slices.whole(samples(sources))
    found += await asyncio.to_thread(lambda: [*disk_samples(), *space_samples(sources.logs)])
    found += await slices.whole(dashboard_samples(sources.dashboards, found, list(sources.partitions)))
    for sample in found:
        by_family.setdefault(FAMILY_OF[sample[0]], []).append(sample)
    pages: list[bytes] = []
    for family in (*FAMILIES, *DASHBOARD_FAMILIES):
        pages += [page async for page in pages_of(family, by_family.get(family.name, ()), slices)]
    # In a thread, as the disks above: a file is open for each connection and each log, and counting them takes a while.
    return b"".join([*pages, *map(text_of, await asyncio.to_thread(process_families))])


async def pages_of(family: Family, found: Sequence[Sample], slices: Slices) -> AsyncIterator[bytes]:
    """Yield the samples of a family, some a turn; the first have its name and help above them."""
    from prometheus_client import Metric

    stem = family.name.removesuffix("_total") if family.kind is Kind.COUNTER else family.name
    async for some in slices.in_turns(found, SAMPLES_PER_TURN):
        metric = Metric(stem, family.help, family.kind)
        for name, values, value in some:
            metric.add_sample(name, dict(zip(labels_of(family, name), values, strict=True)), value)
        page = text_of(metric)
        yield page if some[0] is found[0] else page.split(b"\n", HEAD_LINES)[-1]
    if found:
        await slices.turn()


def text_of(metric: "Metric") -> bytes:
    from prometheus_client import generate_latest
    from prometheus_client.registry import Collector

    class One(Collector):
        """A registry's worth of one family."""

        def collect(self) -> Iterator["Metric"]:
            yield metric

    return generate_latest(One())


def process_families() -> list["Metric"]:
    """Return memory, CPU, open files and start time of this process."""
    from prometheus_client import CollectorRegistry, ProcessCollector

    return list(ProcessCollector(registry=CollectorRegistry()).collect())


def labels_of(family: Family, name: str) -> tuple[str, ...]:
    return (*family.labels, "le") if name.endswith("_bucket") else family.labels


def names_of(family: Family) -> list[str]:
    """Return the names of its samples."""
    if family.kind is Kind.HISTOGRAM:
        return [family.name + suffix for suffix in ("_bucket", "_sum", "_count")]
    return [family.name]


FAMILY_OF: Final = {name: family.name for family in (*FAMILIES, *DASHBOARD_FAMILIES) for name in names_of(family)}


def samples(sources: Sources) -> Work[list[Sample]]:
    """Collect every sample, in no particular order."""
    found, not_shown = [*node_samples(sources)], 0
    for quota_type, quota in sources.quotas.by_type.items():
        usages = yield from quota.usages(int(sources.clock.monotonic_ms()))
        found += quota_samples(quota_type, quota, usages)
        entities = yield from quota.entities(int(sources.clock.monotonic_ms()))
        found += entity_samples(quota_type, entities)
        not_shown += quota.entities_total - len(entities)
    for quota_type, topics in ((PRODUCE, sources.quotas.produced), (FETCH, sources.quotas.fetched)):
        entities = yield from topics.usages(int(sources.clock.monotonic_ms()))
        found += entity_samples(quota_type, entities)
        not_shown += topics.limits_total - len(entities)
    for quota_type, observed in sources.quotas.observed.items():
        lines = yield from observed.observed(int(sources.clock.monotonic_ms()))
        found += observed_samples(quota_type, lines)
    for listener in list(sources.listeners)[:1]:  # of a broker, if this node is one
        entities = yield from listener.rates.lines(int(sources.clock.monotonic_ms()))
        found += entity_samples(CONNECTION_CREATION, entities)
        not_shown += listener.rates.held.limits_total - len(entities)
        lines = yield from listener.rates.observed.lines(int(sources.clock.monotonic_ms()))
        found += observed_samples(CONNECTION_CREATION, lines)
    found.append(("kavka_series_omitted", ("quota",), not_shown))
    found += throttle_samples(sources.throttles)
    found += exempt_samples(sources.quotas.requests, int(sources.clock.monotonic_ms()))
    found += callback_samples(sources.quotas.calls)
    found += request_samples(sources.requests)
    for listener in sources.listeners:
        found += listener_samples(listener)
        yield
    found += rate_samples(list(sources.listeners), int(sources.clock.monotonic_ms()))
    found += yield from partition_samples(list(sources.partitions))
    found += directory_samples(sources.logs)
    if sources.cleaner is not None:
        found += cleaner_samples(sources.cleaner, sources.logs, sources.clock.now_ms())
    found += yield from coordinator_samples(sources)
    if sources.client_metrics is not None:
        found += yield from telemetry_samples(sources.client_metrics)
    if sources.auditing is not None:
        found += audit_samples(sources.auditing)
    yield
    found += yield from controller_samples(sources.metadata, is_active=sources.is_active_controller())
    found += quorum_samples(sources.quorum)
    found += count_samples(sources.counts)
    return found


def coordinator_samples(sources: Sources) -> Work[list[Sample]]:
    """Collect the figures of transactions and groups that are coordinated here, and of share partitions."""
    found: list[Sample] = []
    if sources.transactions is not None:
        found += transaction_samples(sources.transactions, sources.clock.now_ms())
    if sources.sharing is not None:
        found += yield from share_samples(sources.sharing, sources.clock.now_ms())
    if sources.lag is not None:
        found += lag_samples(sources.lag)
    if sources.groups is not None:
        found += yield from streams_samples(sources.groups)
    return found


def node_samples(sources: Sources) -> Iterator[Sample]:
    yield "kavka_build_info", (version("kavka-broker"), platform.python_version()), 1
    yield "kavka_broker_info", (str(sources.node_id), sources.cluster_id), 1
    yield "kavka_broker_ready", (), int(sources.health.is_ready)
    yield "kavka_assertions_failed_total", (), sources.failed_assertions_total
    yield from memory_samples()
    yield from loop_samples(sources.watchdog, sources.loop_use)
    yield from turn_samples(sources.turns)


def request_samples(counted: Iterable[tuple[str, ApiStats]]) -> Iterator[Sample]:
    totals: dict[str, list[float]] = {}
    for api, stats in counted:
        if stats.requests:
            values = (stats.requests, stats.errors, stats.seconds, *stats.by_duration)
            total = totals.setdefault(api, [0] * len(values))
            for index, value in enumerate(values):
                total[index] += value
    for api, (requests, errors, seconds, *by_duration) in totals.items():
        yield "kavka_requests_total", (api,), requests
        yield "kavka_request_errors_total", (api,), errors
        yield "kavka_request_seconds_total", (api,), seconds
        yield from duration_samples(api, by_duration, seconds)


def duration_samples(api: str, counts: Sequence[float], seconds: float) -> Iterator[Sample]:
    bounds = [*map(str, DURATION_BOUNDS_S), "+Inf"]
    for bound, count in zip(bounds, accumulate(counts), strict=True):
        yield "kavka_request_duration_seconds_bucket", (api, bound), count
    yield "kavka_request_duration_seconds_count", (api,), sum(counts)
    yield "kavka_request_duration_seconds_sum", (api,), seconds


def turn_samples(turns: Turns) -> Iterator[Sample]:
    for client, spent in turns.spent.items():
        yield "kavka_client_waited_seconds_total", tuple(map(label_of, client)), spent.waited_ns / 1e9


def memory_samples() -> Iterator[Sample]:
    """Yield the memory that is really taken from the machine; nothing where the system does not say."""
    with suppress(OSError), open("/proc/self/status", encoding="ascii") as status:
        for line in status:
            if line.startswith("RssAnon:"):
                yield "kavka_memory_anonymous_bytes", (), int(line.split()[1]) * 1024


def loop_samples(watchdog: Watchdog, use: LoopUse) -> Iterator[Sample]:
    cpu_s = thread_time()
    yield "kavka_loop_cpu_seconds_total", (), cpu_s
    yield "kavka_loop_idle_ratio", (), use.idle_ratio(monotonic(), cpu_s)
    for name, (count, seconds) in watchdog.held.items():
        yield "kavka_loop_held_total", (name,), count
        yield "kavka_loop_held_seconds_total", (name,), seconds


def disk_samples() -> Iterator[Sample]:
    """Yield what the disks have done for this process; nothing where the system does not say."""
    with suppress(OSError), open("/proc/self/io", encoding="ascii") as counted:
        values = dict(line.split(": ") for line in counted)
        yield "kavka_disk_read_bytes_total", (), int(values["read_bytes"])
        yield "kavka_disk_written_bytes_total", (), int(values["write_bytes"])


def space_samples(logs: LogManager) -> Iterator[Sample]:
    for directory in logs.directories:
        with suppress(OSError):
            size_bytes, free_bytes = directory.space()
            yield "kavka_log_directory_size_bytes", (directory.path,), size_bytes
            yield "kavka_log_directory_free_bytes", (directory.path,), free_bytes


def entity_samples(quota_type: str, usages: Iterable[EntityUsage]) -> Iterator[Sample]:
    for usage in usages:
        labels = (str(usage.entity), quota_type)
        yield "kavka_quota_limit", labels, usage.limit
        yield "kavka_quota_usage", labels, usage.usage
        yield "kavka_quota_shares", labels, usage.shares
        yield "kavka_quota_throttled_seconds_total", labels, usage.held_ms / 1000
        yield "kavka_quota_throttled_connections", labels, usage.held_connections
        yield "kavka_quota_shadowed", labels, int(usage.is_shadowed)


def callback_samples(calls: QuotaCalls | None) -> Iterator[Sample]:
    yield "kavka_quota_callback_failures_total", (), 0 if calls is None else calls.failures.total
    yield "kavka_quota_callback_waiting", (), 0 if calls is None else calls.waiting


def listener_samples(listener: Listener) -> Iterator[Sample]:
    label = (listener.name,)
    yield "kavka_connections", label, len(listener.connections)
    yield "kavka_connections_throttled", label, sum(connection.is_muted for connection in listener.connections)
    yield "kavka_connections_accepted_total", label, listener.accepted_count
    yield "kavka_connections_refused_total", label, listener.refused_count
    yield "kavka_network_received_bytes_total", label, listener.received_bytes
    yield "kavka_network_sent_bytes_total", label, listener.sent_bytes
    yield from login_samples(listener.authentications, label)
    if listener.sasl is not None and (judge := listener.sasl.tokens) is not None:
        yield "kavka_token_keys_age_seconds", label, (listener.clock.monotonic_ms() - judge.keys_read_ms) / 1000
        yield "kavka_token_keys_refresh_seconds", label, judge.settings.refresh_ms / 1000


def login_samples(counts: Authentications, label: tuple[str]) -> Iterator[Sample]:
    yield f"{OF_SOCKETS}successful_authentication_total", label, counts.successful
    yield f"{OF_SOCKETS}failed_authentication_total", label, counts.failed
    yield f"{OF_SOCKETS}successful_authentication_no_reauth_total", label, counts.successful_untold
    yield f"{OF_SOCKETS}successful_reauthentication_total", label, counts.renewed
    yield f"{OF_SOCKETS}failed_reauthentication_total", label, counts.not_renewed
    yield "kavka_sessions_ended_total", label, counts.sessions_ended


def rate_samples(listeners: Sequence[Listener], now_ms: int) -> Iterator[Sample]:
    """Yield how fast connections come. The first listener is a broker's, if this node is one."""
    for listener in listeners:
        rate = listener.rates.of_listener(listener.name, now_ms)
        yield f"{OF_SOCKETS}connection_accept_rate", (listener.name, ""), rate
    for listener in listeners[:1]:
        yield (
            f"{OF_SOCKETS}broker_connection_accept_rate",
            (),
            listener.rates.of_broker(now_ms),
        )
        for address, rate in listener.rates.of_addresses(ADDRESSES_SHOWN_MAX, now_ms):
            yield "kavka_address_connection_rate", (address,), rate
            yield f"{OF_SOCKETS}connection_accept_rate", ("", address), rate


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
        left = [uncleanable for uncleanable in cleaner.uncleanable if logs.directory_of(*uncleanable.name) is directory]
        yield "kavka_cleaner_uncleanable_partitions", (directory.path,), len(left)
        yield f"{of_logs}uncleanable_bytes", (directory.path,), sum(uncleanable.size_bytes for uncleanable in left)
    yield "kavka_cleaner_runs_total", (), figures.runs_total
    yield "kavka_cleaner_read_bytes_total", (), figures.bytes_read_total
    yield "kavka_cleaner_written_bytes_total", (), figures.bytes_written_total
    yield "kavka_cleaner_progress_ratio", (), cleaner.progress


def audit_samples(auditing: Auditing) -> Iterator[Sample]:
    journal = auditing.journal
    yield "kavka_audit_events_total", ("written",), auditing.written_total
    yield "kavka_audit_events_total", ("dropped",), 0 if journal is None else journal.dropped_total
    yield "kavka_audit_events_waiting", (), 0 if journal is None else journal.waiting
    yield "kavka_audit_write_failures_total", (), auditing.failures_total
    yield "kavka_audit_buffer_usage_ratio", (), 0 if journal is None else journal.usage
    if auditing.last_written_ms is not None:
        yield "kavka_audit_last_written_timestamp_seconds", (), auditing.last_written_ms / 1000
    for kind, times in () if journal is None else journal.told.items():
        yield "kavka_audit_told_total", (kind,), times
    for principal, events in () if journal is None else journal.refusal_events.items():
        yield "kavka_audit_refusal_events_total", (label_of(principal),), events
    yield "kavka_audit_refusing", (), int(auditing.is_refusing)
    for kind, times in auditing.refused.items():
        yield "kavka_audit_refused_total", (kind,), times


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
