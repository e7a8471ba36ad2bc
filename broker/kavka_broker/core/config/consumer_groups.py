"""What a broker's file may say of groups of the new protocol: each default lies within its bounds (KIP-848)."""

from collections.abc import Callable
from typing import Final

from kavka_broker.core.config.definition import ConfigError

BOUNDED: Final = ("assignment.interval.ms", "heartbeat.interval.ms", "session.timeout.ms")


def check_consumer_groups(number: Callable[[str], int]) -> None:
    """Check the keys `group.consumer.*`, by their numbers. Raises ConfigError."""
    for name in BOUNDED:
        key, least_key, most_key = (f"group.consumer.{bound}{name}" for bound in ("", "min.", "max."))
        value, least, most = number(key), number(least_key), number(most_key)
        if least > most:
            raise ConfigError(least_key, f"{least} is above {most_key}={most}; write at most that")
        if not least <= value <= most:
            raise ConfigError(
                key, f"{value} is not within {least_key}={least} and {most_key}={most}; write one that is"
            )
    interval, session = number("group.consumer.heartbeat.interval.ms"), number("group.consumer.session.timeout.ms")
    if interval >= session:
        key = "group.consumer.heartbeat.interval.ms"
        raise ConfigError(key, f"{interval} leaves no heartbeat within group.consumer.session.timeout.ms={session}")
