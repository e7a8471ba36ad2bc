"""When nodes may be restarted: times of the week, each in a time zone of its own."""

from collections.abc import Iterable
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from kavka_operator.api.cluster import Window

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def unknown_zones(windows: Iterable[Window]) -> list[str]:
    """The time zones of the windows that are not known here."""
    return [window.time_zone for window in windows if _zone(window.time_zone) is None]


def is_open(windows: Iterable[Window], now: datetime) -> bool:
    """Whether one of the windows is open; without any, it is always. One in an unknown time zone never is."""
    each_one = list(windows)
    return not each_one or any(_is_open(window, now) for window in each_one)


def shown(windows: Iterable[Window]) -> str:
    """The windows in words."""
    return "; ".join(
        f"{', '.join(window.days)} {window.start_time} {window.time_zone} for {window.duration_minutes} min"
        for window in windows
    )


def _zone(name: str) -> ZoneInfo | None:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):  # such as a name that is a directory of zones
        return None


def _is_open(window: Window, now: datetime) -> bool:
    zone = _zone(window.time_zone)
    if zone is None:
        return False
    today, start = now.astimezone(zone).date(), time.fromisoformat(window.start_time)
    long = timedelta(minutes=window.duration_minutes)
    for days_ago in range(9):  # a window may be open for a week, and a day in which a clock is put back is longer
        day = today - timedelta(days=days_ago)
        begin = datetime.combine(day, start, zone).astimezone(UTC)
        if DAYS[day.weekday()] in window.days and begin <= now < begin + long:
            return True
    return False
