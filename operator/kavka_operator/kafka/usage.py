"""What clients use of their quotas, as the brokers' metrics pages tell it (`broker_metrics`), summed up by entity.

Kafka's admin protocol tells limits but not usage. Kavka's brokers show, for every client under a quota, the rate as
the quota measures it, the limit, and whose limit it is. Many clients may share the limits of one entity (each user has
its own allowance under a default), so `used` is that of the client nearest to its limit.
"""

from collections.abc import Iterable, Mapping

from kavka_operator.domain.observed import SeenUsage
from kavka_operator.kafka.broker_metrics import (
    FETCH,
    PRODUCE,
    ClientFigures,
    ClientKey,
    Page,
    QuotaFigures,
    fetch_text,
    read_page,
)

Clients = Mapping[ClientKey, ClientFigures]


def fetch(address: str) -> str | None:
    """The metrics page of a broker, or None if it does not answer."""
    try:
        return fetch_text(f"http://{address}/metrics")
    except OSError:
        return None


def usage_by_entity(pages: Mapping[int, str]) -> dict[str, tuple[SeenUsage, ...]]:
    """Usage of each entity, by its description, with an item for each broker. Raises ValueError for what is no page."""
    found: dict[str, list[SeenUsage]] = {}
    for broker, text in sorted(pages.items()):
        for entity, usage in _on_broker(broker, read_page(text)).items():
            found.setdefault(entity, []).append(usage)
    return {entity: tuple(lines) for entity, lines in found.items()}


def _on_broker(broker: int, page: Page) -> dict[str, SeenUsage]:
    clients: dict[str, dict[ClientKey, ClientFigures]] = {}
    for key, figures in page.clients.items():
        if figures.limit is not None:
            clients.setdefault(figures.source, {})[key] = figures
    quotas: dict[str, dict[str, QuotaFigures]] = {}
    for (entity, kind), quota in page.quotas.items():
        quotas.setdefault(entity, {})[kind] = quota
    return {
        entity: _sum(broker, clients.get(entity, {}), quotas.get(entity, {}))
        for entity in dict.fromkeys((*clients, *quotas))
    }


def _sum(broker: int, clients: Clients, quotas: Mapping[str, QuotaFigures]) -> SeenUsage:
    observed = [quota.observed_seconds for quota in quotas.values() if quota.observed_seconds is not None]
    used = [(client.rate or 0.0) / (client.limit or float("inf")) for client in clients.values()]
    used += [(quota.usage or 0.0) / quota.limit for quota in quotas.values() if quota.limit]
    used += [(quota.observed_usage or 0.0) / quota.observed_limit for quota in quotas.values() if quota.observed_limit]
    return SeenUsage(
        broker,
        _rate(clients, quotas, PRODUCE),
        _rate(clients, quotas, FETCH),
        _total(quota.throttled_seconds for quota in quotas.values()),
        max(used, default=0.0),
        _total(client.demand for key, client in clients.items() if key.kind == PRODUCE),
        _total(client.demand for key, client in clients.items() if key.kind == FETCH),
        sum(observed) if observed else None,
    )


def _rate(clients: Clients, quotas: Mapping[str, QuotaFigures], kind: str) -> float:
    """The bytes a second of all clients together, or what is measured against an observed limit."""
    enforced = _total(client.rate for key, client in clients.items() if key.kind == kind)
    return enforced or (quotas[kind].observed_usage if kind in quotas else None) or 0.0


def _total(values: Iterable[float | None]) -> float:
    return sum(value for value in values if value is not None)
