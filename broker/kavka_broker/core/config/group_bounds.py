"""The bounds of the settings of groups of the newer protocols (KIP-848, KIP-932, KIP-1071), as a file may set them."""

from collections.abc import Callable
from typing import Final

from kavka_broker.core.config.definition import ConfigError

BOUNDED: Final = ("assignment.interval.ms", "heartbeat.interval.ms", "session.timeout.ms")
BOUNDED_SHARES: Final = ("delivery.count.limit", "partition.max.record.locks", "record.lock.duration.ms")


def check_consumer_groups(number: Callable[[str], int]) -> None:
    """Check the keys `group.consumer.*`, by their numbers. Raises ConfigError."""
    _check_bounds("group.consumer", BOUNDED, number)
    _check_heartbeats("group.consumer", number)


def check_share_groups(number: Callable[[str], int]) -> None:
    """Check the keys `group.share.*`, by their numbers. Raises ConfigError."""
    _check_bounds("group.share", BOUNDED + BOUNDED_SHARES, number)
    _check_heartbeats("group.share", number)
    key, size_key = "group.share.max.share.sessions", "group.share.max.size"
    sessions, size = number(key), number(size_key)
    if sessions < size:
        raise ConfigError(key, f"{sessions} are fewer than one for each member of a group: {size_key}={size}")


def check_streams_groups(number: Callable[[str], int]) -> None:
    """Check the keys `group.streams.*`, by their numbers. Raises ConfigError."""
    _check_bounds("group.streams", BOUNDED, number)
    _check_heartbeats("group.streams", number)
    key, most_key = "group.streams.num.standby.replicas", "group.streams.max.standby.replicas"
    standbys, most = number(key), number(most_key)
    if standbys > most:
        raise ConfigError(key, f"{standbys} is above {most_key}={most}; write at most that")


def _check_bounds(groups: str, names: tuple[str, ...], number: Callable[[str], int]) -> None:
    """Raises ConfigError."""
    for name in names:
        key, least_key, most_key = (f"{groups}.{bound}{name}" for bound in ("", "min.", "max."))
        value, least, most = number(key), number(least_key), number(most_key)
        if least > most:
            raise ConfigError(least_key, f"{least} is above {most_key}={most}; write at most that")
        if not least <= value <= most:
            raise ConfigError(
                key, f"{value} is not within {least_key}={least} and {most_key}={most}; write one that is"
            )


def _check_heartbeats(groups: str, number: Callable[[str], int]) -> None:
    """Raises ConfigError."""
    key, session_key = f"{groups}.heartbeat.interval.ms", f"{groups}.session.timeout.ms"
    interval, session = number(key), number(session_key)
    if interval >= session:
        raise ConfigError(key, f"{interval} leaves no heartbeat within {session_key}={session}")
