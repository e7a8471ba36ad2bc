"""Figures of clients' quotas: of each share what it has used, its limit, and how it was throttled."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from kavka_broker.quotas.client_quotas import CONTROLLER_MUTATION, FETCH, PRODUCE, REQUEST
from kavka_broker.quotas.entity_usage import EntityUsage
from kavka_broker.quotas.quota_shares import DELAY_BUCKETS_MS, Shares
from kavka_broker.quotas.request_quota import RequestQuota
from kavka_broker.quotas.sensor import Usage
from kavka_broker.replica.leading.throttles import Throttle
from kavka_broker.runtime.partition_figures import Sample


@dataclass(frozen=True, slots=True)
class Names:
    """The families of one type of quota. `used` has the type as a label where `is_shared`; the factors give units.

    `kafka` begins the names of Apache Kafka's figures that every type has.
    """

    used: str
    limit: str
    rate: str
    kafka: str
    is_shared: bool = False
    tokens: str = ""
    used_factor: float = 1
    limit_factor: float = 1


CONNECTION_CREATION: Final = "connection_creation"
BYTES: Final = ("kavka_client_bytes_total", "kavka_client_quota_limit_bytes_per_second")
NAMES: Final[Mapping[str, Names]] = {
    PRODUCE: Names(*BYTES, "kafka_server_produce_byte_rate", "kafka_server_produce", is_shared=True),
    FETCH: Names(*BYTES, "kafka_server_fetch_byte_rate", "kafka_server_fetch", is_shared=True),
    REQUEST: Names(
        "kavka_client_loop_seconds_total",
        "kavka_client_quota_limit_loop_ratio",
        "kafka_server_request_request_time",
        "kafka_server_request",
        used_factor=1e-9,
        limit_factor=0.01,
    ),
    CONTROLLER_MUTATION: Names(
        "kavka_client_mutations_total",
        "kavka_client_quota_limit_mutations_per_second",
        "kafka_server_controllermutation_mutation_rate",
        "kafka_server_controllermutation",
        tokens="kafka_server_controllermutation_tokens",
    ),
}


def quota_samples(quota_type: str, quota: Shares, usages: Iterable[Usage]) -> Iterator[Sample]:
    names = NAMES[quota_type]
    for usage in usages:
        client = (usage.user, usage.client_id)
        labels = (*client, quota_type)
        yield names.used, labels if names.is_shared else client, usage.used_total * names.used_factor
        yield "kavka_client_throttle_seconds_total", labels, usage.held_ms_total / 1000
        yield "kavka_client_throttled_requests_total", labels, usage.throttled_requests_total
        yield from limit_samples(usage, labels, names)
    yield f"{names.kafka}_queue_size", (), quota.held_connections
    yield "kavka_client_label_overflow_total", (quota_type,), quota.overflows_total
    yield from delay_samples(quota_type, quota)


def limit_samples(usage: Usage, labels: tuple[str, ...], names: Names) -> Iterator[Sample]:
    client = labels[:2]
    if usage.effective is not None:
        where = (str(usage.effective.level), str(usage.effective.entity))
        yield (
            names.limit,
            (*(labels if names.is_shared else client), *where),
            usage.effective.limit * names.limit_factor,
        )
    if usage.rate is not None:
        yield names.rate, client, usage.rate
        yield f"{names.kafka}_throttle_time", client, usage.throttle_ms_average
    if usage.demand is not None and names.is_shared:
        yield "kavka_client_demand_bytes_per_second", labels, usage.demand
    if usage.tokens is not None:
        yield names.tokens, client, usage.tokens


def observed_samples(quota_type: str, observed: Iterable[EntityUsage]) -> Iterator[Sample]:
    for line in observed:
        labels = (str(line.entity), quota_type)
        yield "kavka_quota_observed_limit", labels, line.limit
        yield "kavka_quota_observed_usage", labels, line.usage
        yield "kavka_quota_observed_throttled_seconds_total", labels, line.held_ms / 1000


def delay_samples(quota_type: str, quota: Shares) -> Iterator[Sample]:
    bounds = [*(str(bound_ms / 1000) for bound_ms in DELAY_BUCKETS_MS), "+Inf"]
    counts = list(accumulate(quota.delay_counts))
    for bound, count in zip(bounds, counts, strict=True):
        yield "kavka_throttle_duration_seconds_bucket", (quota_type, bound), count
    yield "kavka_throttle_duration_seconds_count", (quota_type,), counts[-1]
    yield "kavka_throttle_duration_seconds_sum", (quota_type,), quota.delay_ms_total / 1000


def throttle_samples(throttles: Mapping[str, Throttle]) -> Iterator[Sample]:
    for kind, throttle in throttles.items():
        yield f"kafka_server_{kind}replication_byte_rate", (), throttle.byte_rate


def exempt_samples(quota: RequestQuota, now_ms: int) -> Iterator[Sample]:
    yield "kavka_exempt_loop_seconds_total", (), quota.exempt.used_total / 1e9
    yield "kavka_login_loop_seconds_total", (), quota.before_login.used_total / 1e9
    yield "kafka_server_request_exempt_request_time", (), quota.exempt_percentage(now_ms)
