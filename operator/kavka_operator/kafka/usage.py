"""What clients use of their quotas, read from the brokers' own metrics.

Kafka's admin protocol tells limits but not usage. Kavka's brokers show, for every client under a quota, the rate as
the quota measures it, the limit, and whose limit it is; this sums it up by entity. Many clients may share the limits of
one entity (each user has its own allowance under a default), so `used` is that of the client nearest to its limit.
"""

import urllib.request
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from prometheus_client.parser import text_string_to_metric_families

from kavka_operator.domain.seen import SeenUsage

TIMEOUT_SECONDS = 2.0
PAGE_BYTES_MAX = 16 * 1024 * 1024

LIMIT = "kavka_client_quota_limit_bytes_per_second"
THROTTLED = "kavka_client_throttle_seconds_total"
RATES = {"kafka_server_produce_byte_rate": "produce", "kafka_server_fetch_byte_rate": "fetch"}

Client = tuple[str, str, str]
"""User, client id, and produce or fetch."""


@dataclass(slots=True)
class _Page:
    """The quota figures of one broker's metrics page."""

    limits: dict[Client, tuple[str, float]] = field(default_factory=dict)
    rates: dict[Client, float] = field(default_factory=dict)
    throttled: dict[Client, float] = field(default_factory=dict)


def fetch(address: str) -> str | None:
    """The metrics page of a broker, or None if it does not answer."""
    try:
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=TIMEOUT_SECONDS) as answer:
            text: bytes = answer.read(PAGE_BYTES_MAX)
    except OSError:
        return None
    return text.decode(errors="replace")


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
            elif sample.name in {LIMIT, THROTTLED}:
                client = (user, client_id, sample.labels["quota_type"])
                if sample.name == LIMIT:
                    page.limits[client] = (sample.labels["source"], sample.value)
                else:
                    page.throttled[client] = sample.value
    return page


def _on_broker(broker: int, page: _Page) -> dict[str, SeenUsage]:
    clients: dict[str, list[Client]] = {}
    for client, (entity, _) in page.limits.items():
        clients.setdefault(entity, []).append(client)
    return {entity: _sum(broker, page, those) for entity, those in clients.items()}


def _sum(broker: int, page: _Page, clients: Iterable[Client]) -> SeenUsage:
    those = list(clients)
    by_type = {
        kind: sum(page.rates.get(client, 0.0) for client in those if client[2] == kind) for kind in RATES.values()
    }
    used = max(page.rates.get(client, 0.0) / (page.limits[client][1] or float("inf")) for client in those)
    waited = sum(page.throttled.get(client, 0.0) for client in those)
    return SeenUsage(broker, by_type["produce"], by_type["fetch"], waited, used)
