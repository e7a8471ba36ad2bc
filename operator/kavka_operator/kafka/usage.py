"""What clients use of their quotas, read from the brokers' own metrics.

Kafka's admin protocol tells limits but not usage. Kavka's brokers show, for every client under a quota, the rate as
the quota measures it, the limit, and whose limit it is; this sums it up by entity. Many clients may share the limits of
one entity (each user has its own allowance under a default), so `used` is that of the client nearest to its limit.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from prometheus_client.parser import text_string_to_metric_families

from kavka_operator.domain.seen import SeenUsage
from kavka_operator.kafka.figures import fetch_text

LIMIT = "kavka_client_quota_limit_bytes_per_second"
THROTTLED = "kavka_quota_throttled_seconds_total"
OBSERVED_LIMIT, OBSERVED_USAGE = "kavka_quota_observed_limit", "kavka_quota_observed_usage"
OBSERVED_HELD = "kavka_quota_observed_throttled_seconds_total"
DEMAND = "kavka_client_demand_bytes_per_second"
CONFIGURED = "kavka_quota_limit"
OF_ENTITIES = frozenset({CONFIGURED, THROTTLED, OBSERVED_LIMIT, OBSERVED_USAGE, OBSERVED_HELD})
RATES = {"kafka_server_produce_byte_rate": "produce", "kafka_server_fetch_byte_rate": "fetch"}

Client = tuple[str, str, str]
"""User, client id, and produce or fetch."""


@dataclass(slots=True)
class _Page:
    """The quota figures of one broker's metrics page."""

    limits: dict[Client, tuple[str, float]] = field(default_factory=dict)
    rates: dict[Client, float] = field(default_factory=dict)
    demands: dict[Client, float] = field(default_factory=dict)
    of_entities: dict[tuple[str, str], dict[str, float]] = field(default_factory=dict)
    """By family and entity, the values by type of quota."""


def fetch(address: str) -> str | None:
    """The metrics page of a broker, or None if it does not answer."""
    try:
        return fetch_text(f"http://{address}/metrics")
    except OSError:
        return None


def usage_by_entity(pages: Mapping[int, str]) -> dict[str, tuple[SeenUsage, ...]]:
    """Usage of each entity, by its description, with an item for each broker."""
    found: dict[str, list[SeenUsage]] = {}
    for broker, text in sorted(pages.items()):
        for entity, usage in _on_broker(broker, _read(text)).items():
            found.setdefault(entity, []).append(usage)
    return {entity: tuple(lines) for entity, lines in found.items()}


def _read(text: str) -> _Page:
    page = _Page()
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            user, client_id = sample.labels.get("user", ""), sample.labels.get("client_id", "")
            if sample.name in RATES:
                page.rates[user, client_id, RATES[sample.name]] = sample.value
            elif sample.name == LIMIT:
                client = (user, client_id, sample.labels["quota_type"])
                page.limits[client] = (sample.labels["source"], sample.value)
            elif sample.name == DEMAND:
                page.demands[user, client_id, sample.labels["quota_type"]] = sample.value
            elif sample.name in OF_ENTITIES:
                values = page.of_entities.setdefault((sample.name, sample.labels["entity"]), {})
                values[sample.labels["quota_type"]] = sample.value
    return page


def _on_broker(broker: int, page: _Page) -> dict[str, SeenUsage]:
    clients: dict[str, list[Client]] = {}
    for client, (entity, _) in page.limits.items():
        clients.setdefault(entity, []).append(client)
    for family, entity in page.of_entities:
        if family in {CONFIGURED, OBSERVED_LIMIT}:
            clients.setdefault(entity, [])
    return {entity: _sum(broker, page, entity, those) for entity, those in clients.items()}


def _sum(broker: int, page: _Page, entity: str, clients: Sequence[Client]) -> SeenUsage:
    produced, fetched = [
        sum(page.rates.get(client, 0.0) for client in clients if client[2] == kind) or observed
        for kind, observed in zip(RATES.values(), _observed_rates(page, entity), strict=True)
    ]
    limits = page.of_entities.get((OBSERVED_LIMIT, entity), {})
    used = [page.rates.get(client, 0.0) / (page.limits[client][1] or float("inf")) for client in clients]
    for kind, rate in zip(RATES.values(), (produced, fetched), strict=True):
        if limits.get(kind):
            used.append(rate / limits[kind])
    return SeenUsage(
        broker,
        produced,
        fetched,
        sum(page.of_entities.get((THROTTLED, entity), {}).values()),
        max(used, default=0.0),
        sum(page.demands.get(client, 0.0) for client in clients if client[2] == "produce"),
        sum(page.demands.get(client, 0.0) for client in clients if client[2] == "fetch"),
        sum(page.of_entities[OBSERVED_HELD, entity].values()) if (OBSERVED_HELD, entity) in page.of_entities else None,
    )


def _observed_rates(page: _Page, entity: str) -> list[float]:
    values = page.of_entities.get((OBSERVED_USAGE, entity), {})
    return [values.get(kind, 0.0) for kind in RATES.values()]
