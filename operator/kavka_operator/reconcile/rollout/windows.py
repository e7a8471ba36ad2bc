"""When nodes may be restarted: times of the week, in UTC."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from kavka_operator.api.cluster import Window

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def is_open(windows: Iterable[Window], now: datetime) -> bool:
    """Whether one of the windows is open; without any, it is always."""
    each_one = list(windows)
    return not each_one or any(_is_open(window, now) for window in each_one)


def shown(windows: Iterable[Window]) -> str:
    """The windows in words."""
    return "; ".join(
        f"{', '.join(window.days)} {window.start_time} UTC for {window.duration_minutes} min" for window in windows
    )


def _is_open(window: Window, now: datetime) -> bool:
    hour, minute = map(int, window.start_time.split(":"))
    long = timedelta(minutes=window.duration_minutes)
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    for days_ago in range(8):  # a window may be open for a week
        begin = midnight - timedelta(days=days_ago) + timedelta(hours=hour, minutes=minute)
        if DAYS[begin.weekday()] in window.days and begin <= now < begin + long:
            return True
    return False
