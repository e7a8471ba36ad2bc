"""`kavka explain quota --topic`: which limits a topic sets to all of its clients (ADR 0021).

They stand in the topic's config, which every Kafka describes and only Kavka obeys; what is used of them, on the metrics
pages of the brokers.
"""

from collections.abc import Iterator, Mapping

from kavka_broker.core.config.topic_table import (
    PARTITION_CONSUMER_RATE,
    PARTITION_PRODUCER_RATE,
    TOPIC_CONSUMER_RATE,
    TOPIC_PRODUCER_RATE,
)
from kavka_broker.core.quota.entity import TopicEntity
from kavka_operator.api.printer_columns import aligned
from kavka_operator.api.quantity import spell
from kavka_operator.domain.units import amount
from kavka_operator.kafka.broker_metrics import FETCH, PRODUCE, Page, QuotaFigures

TOGETHER, APART = "all partitions that a broker leads, together", "each partition"
LIMITS = {
    TOPIC_PRODUCER_RATE: (PRODUCE, TOGETHER),
    PARTITION_PRODUCER_RATE: (PRODUCE, APART),
    TOPIC_CONSUMER_RATE: (FETCH, TOGETHER),
    PARTITION_CONSUMER_RATE: (FETCH, APART),
}
"""What each config limits, and of how much of the topic."""


def of_topic(name: str, cluster: str, limits: Mapping[str, int], pages: Mapping[str, Page]) -> Iterator[str]:
    """The lines about a topic. `limits` are bytes a second by the topic's configs."""
    yield f'topic "{name}", all clients together, on each broker of {cluster}:'
    if not limits:
        yield "  nothing limits this topic; a quota of a client holds for it as elsewhere"
    for key, limit in limits.items():
        kind, scope = LIMITS[key]
        entity = str(TopicEntity(name, each_partition=scope == APART))
        yield f"\n{key} {spell(limit)}: {kind}, {scope}"
        rows = [["BROKER", "USES", "USED", "HELD"]]
        rows += ([broker, *_cells(kind, page.quotas.get((entity, kind)))] for broker, page in sorted(pages.items()))
        yield from (f"  {line}".rstrip() for line in aligned(rows).splitlines() if pages)
    if limits and not pages:
        yield "\nKafka's API does not tell usage; name the brokers' metrics pages with --metrics"


def _cells(kind: str, figures: QuotaFigures | None) -> list[str]:
    """Cells of a limit at a broker: its use, by the busiest partition where each has one, and how long it held."""
    if figures is None:
        return ["not led here", "", ""]
    uses = amount(kind, figures.usage) if figures.usage is not None else "not told"
    used = f"{figures.usage / figures.limit:.0%}" if figures.usage is not None and figures.limit else ""
    held = f"{figures.throttled_seconds:.0f}s" if figures.throttled_seconds is not None else "not told"
    return [uses, used, held]
