"""What an entity's quotas come to at a moment: its limits, an override for a while, limits that are only observed.

Beyond Kafka's keys an entity may have keys of ours in the metadata, as any quota has them: set, shown and removed by
the same requests, and ignored by Apache Kafka. KEY is one of Kafka's.

- `kavka_override_KEY` holds instead of KEY while `kavka_override_from_ms` <= now < `kavka_override_until_ms` (of the
  Unix epoch; without a beginning from the first). KEY itself stays as it is, so each broker ends the override by its
  own clock: nobody has to be there, and nothing has to be written back.
- `kavka_observed_KEY` is measured as if it were the limit, and holds nobody back.
"""

from collections.abc import Iterator, Mapping
from math import inf
from typing import Final, TypeVar

from kavka_broker.core.quota.entity import CLIENT_KEYS, IP_KEYS, WHOLE_KEYS, QuotaKey

OVERRIDE: Final = "kavka_override_"
OBSERVED: Final = "kavka_observed_"
OVERRIDE_FROM_MS: Final = f"{OVERRIDE}from_ms"
OVERRIDE_UNTIL_MS: Final = f"{OVERRIDE}until_ms"
TIME_MS_MAX: Final = 2**53 - 1  # times travel as doubles, like limits

OBSERVABLE: Final = (QuotaKey.PRODUCER_BYTE_RATE, QuotaKey.CONSUMER_BYTE_RATE)
_OF_ALL: Final = frozenset({OVERRIDE_FROM_MS, OVERRIDE_UNTIL_MS})
OWN_CLIENT_KEYS: Final = _OF_ALL | {OVERRIDE + key for key in CLIENT_KEYS} | {OBSERVED + key for key in OBSERVABLE}
OWN_IP_KEYS: Final = _OF_ALL | {OVERRIDE + key for key in IP_KEYS}

E = TypeVar("E")
Limits = Mapping[str, Mapping[E, float]]


def base_key(key: str) -> str:
    """Kafka's key that a key of ours is about; the key itself where it is Kafka's."""
    return key.removeprefix(OVERRIDE).removeprefix(OBSERVED)


def greatest(key: str) -> int | None:
    """The greatest value of a key of whole numbers; None for a key that takes fractions."""
    return TIME_MS_MAX if key in _OF_ALL else WHOLE_KEYS.get(base_key(key))


def in_force(limits: Limits[E], now_ms: int) -> dict[str, dict[E, float]]:
    """The limits that hold now, by Kafka's keys."""
    held = {key: dict(values) for key, values in limits.items() if key in set(QuotaKey)}
    overridden = {entity for entity, (begin_ms, end_ms) in _times(limits) if begin_ms <= now_ms < end_ms}
    for key in QuotaKey:
        for entity, limit in limits.get(OVERRIDE + key, {}).items():
            if entity in overridden:
                held.setdefault(key, {})[entity] = limit
    return held


def observed(limits: Limits[E]) -> dict[str, dict[E, float]]:
    """The limits that are only observed, by Kafka's keys."""
    return {key: dict(limits[OBSERVED + key]) for key in OBSERVABLE if OBSERVED + key in limits}


def next_change_ms(limits: Limits[E], now_ms: int) -> int | None:
    """When an override begins or ends next; None where none does."""
    times = [int(time_ms) for _, pair in _times(limits) for time_ms in pair if now_ms < time_ms < inf]
    return min(times, default=None)


def _times(limits: Limits[E]) -> Iterator[tuple[E, tuple[float, float]]]:
    """The entities whose overrides have an end, with their beginnings and ends."""
    begins = limits.get(OVERRIDE_FROM_MS, {})
    for entity, end_ms in limits.get(OVERRIDE_UNTIL_MS, {}).items():
        yield entity, (begins.get(entity, 0.0), end_ms)
