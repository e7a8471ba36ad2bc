"""The configs of a client metrics subscription, as in Apache Kafka 4.3 (KIP-714)."""

from typing import Any, Final

from kavka_broker.core.config.definition import ConfigType, Definition, Range, by_name

INTERVAL_MS_DEFAULT: Final = 300_000
INTERVAL_MS: Final = Range(100, 3_600_000)


def without_gaps(value: Any) -> str | None:
    """A list in which nothing is empty."""
    return "leave out what is empty" if "" in value else None


CLIENT_METRICS_KEYS: Final = by_name(
    (
        Definition("interval.ms", ConfigType.INT, INTERVAL_MS_DEFAULT),
        Definition("match", ConfigType.LIST, (), check=without_gaps),
        Definition("metrics", ConfigType.LIST, (), check=without_gaps),
    )
)
