"""Subscriptions: which clients are asked for which metrics, and how often (KIP-714).

A subscription is a resource with three configs: `metrics`, prefixes of names, where `*` is every metric; `interval.ms`;
and `match`, patterns of what is known of a client, all of which must match. A client is asked for the metrics of every
subscription that matches it, at the shortest interval of them. The subscription id is a function of what is asked and
of the client's instance id, so a client that holds the id of yesterday's subscriptions is told so.
"""

from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from crc32c import crc32c

from kavka_broker.core.config.client_metrics_table import CLIENT_METRICS_KEYS, INTERVAL_MS, INTERVAL_MS_DEFAULT
from kavka_broker.core.config.definition import ConfigError
from kavka_broker.core.regular_expressions import MATCH_MICROSECONDS, Pattern, PatternError
from kavka_broker.core.telemetry.java_hash_set import set_order
from kavka_broker.protocol.errors import BrokerError, ErrorCode

SUBSCRIPTIONS_MAX: Final = 250
"""Each new client is matched against all of them."""
EVERY_METRIC: Final = "*"
ATTRIBUTES: Final = (
    "client_instance_id",
    "client_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
)

Attributes = Mapping[str, str | None]
"""What is known of a client, by the names of ATTRIBUTES."""


@dataclass(frozen=True, slots=True)
class Subscription:
    """One subscription."""

    name: str
    metrics: tuple[str, ...]
    interval_ms: int
    match: tuple[tuple[str, Pattern], ...]

    def matches(self, attributes: Attributes) -> Generator[int, None, bool]:
        """Whether the client is one of those that this subscription asks; yields what each step costs."""
        for name, pattern in self.match:
            value = attributes.get(name)
            yield MATCH_MICROSECONDS
            if value is None or not pattern.matches(value):
                return False
        return True


@dataclass(frozen=True, slots=True)
class Demand:
    """What one client is asked for."""

    metrics: tuple[str, ...]
    interval_ms: int

    def subscription_id(self, instance_id: bytes) -> int:
        """Return the id of this demand to that client, an int32."""
        said = f"[{', '.join(self.metrics)}]{self.interval_ms}".encode()
        words = (int.from_bytes(instance_id[at : at + 4], "big") for at in range(0, 16, 4))
        number = crc32c(said)
        for word in words:
            number ^= word
        return number - (1 << 32) if number >> 31 else number

    def wants(self, metric: str) -> bool:
        """Whether a metric of this name was asked for."""
        return EVERY_METRIC in self.metrics or metric.startswith(self.metrics)


def demand(subscriptions: Iterable[Subscription], attributes: Attributes) -> Generator[int, None, Demand]:
    """Return what the client is asked for: no metrics where no subscription matches it. Yields what each step costs."""
    matching = list[Subscription]()
    for subscription in subscriptions:
        if (yield from subscription.matches(attributes)):
            matching.append(subscription)
    metrics = set_order(metric for subscription in matching for metric in set_order(subscription.metrics))
    interval_ms = min((INTERVAL_MS_DEFAULT, *(subscription.interval_ms for subscription in matching)))
    return Demand((EVERY_METRIC,) if EVERY_METRIC in metrics else metrics, interval_ms)


def subscription(name: str, values: Mapping[str, str]) -> Subscription:
    """Return the subscription of these configs. Raises BrokerError: INVALID_REQUEST or INVALID_CONFIG, as in Kafka."""
    for key in values:
        if key not in CLIENT_METRICS_KEYS:
            known = ", ".join(CLIENT_METRICS_KEYS)
            raise BrokerError(ErrorCode.INVALID_REQUEST, f"{key}: is no config of client metrics; there are {known}")
    try:
        parsed = {
            key: definition.parse(values[key]) if key in values else definition.default for key, definition in TABLE
        }
        match = patterns(parsed["match"])
    except ConfigError as error:
        raise BrokerError(ErrorCode.INVALID_CONFIG, str(error)) from None
    interval_ms = parsed["interval.ms"]
    if (problem := INTERVAL_MS(interval_ms)) is not None:
        raise BrokerError(ErrorCode.INVALID_REQUEST, f"interval.ms: {interval_ms} is not allowed; {problem}")
    return Subscription(name, parsed["metrics"], interval_ms, match)


TABLE: Final = tuple(CLIENT_METRICS_KEYS.items())


def patterns(items: Iterable[str]) -> tuple[tuple[str, Pattern], ...]:
    """Return the patterns by attribute; of two for one attribute the last counts. Raises ConfigError."""
    found: dict[str, Pattern] = {}
    for item in items:
        name, equals, text = item.rstrip("=").partition("=")
        if name.strip() not in ATTRIBUTES or not equals or "=" in text:
            known = ", ".join(ATTRIBUTES)
            raise ConfigError("match", f'"{item}" is no pattern; write NAME=PATTERN, NAME being one of {known}')
        try:
            found[name.strip()] = Pattern.compile(text.strip())
        except PatternError as error:
            raise ConfigError("match", f'"{item}" {error}') from None
    return tuple(found.items())
