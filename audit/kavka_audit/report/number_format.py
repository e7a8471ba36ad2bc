"""Figures as a person reads them."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

STEP: Final = 1024
UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
SIZES: Final = ("bytes", "written_bytes", "read_bytes", "demand", "rate", "quota_limit", "fitting_limit")
HEADINGS: Final[Mapping[str, str]] = {
    "address": "from",
    "batches": "requests",
    "bucket_ms": "ten minutes from",
    "cents": "amount",
    "client_id": "client",
    "config_key": "setting",
    "config_previous": "before",
    "config_value": "after",
    "demand": "demand a second",
    "denied": "refused",
    "end_ms": "until",
    "entity": "quota of",
    "first_ms": "first",
    "fitting_limit": "limit that fits",
    "is_closed": "final",
    "is_new": "new",
    "last_ms": "last",
    "last_principal": "last used by",
    "name": "group",
    "quota_limit": "limit",
    "quota_type": "limits",
    "read_bytes": "read",
    "resource_type": "kind",
    "start_ms": "from",
    "throttle_time_ms": "delay",
    "throttle_time_ms_max": "longest delay",
    "times_the_mean": "times the mean",
    "was_allowed": "allowed at other times",
    "written_bytes": "written",
}
"""What stands above a column on the page, where its name in the table reads badly."""
DURATIONS: Final = ("throttle_time_ms", "throttle_time_ms_max")


def sized(count: float) -> str:
    """Return bytes with a unit: 1.5 MiB."""
    value, unit = float(count), 0
    while abs(value) >= STEP and unit < len(UNITS) - 1:
        value, unit = value / STEP, unit + 1
    return f"{value:.0f} B" if unit == 0 else f"{value:.1f} {UNITS[unit]}"


def percent(share: float) -> str:
    """Return a share of one in hundredths."""
    return f"{share * 100:.1f} %"


def seconds(duration_ms: float) -> str:
    """Return milliseconds as seconds."""
    return f"{duration_ms / 1000:.1f} s"


def tier(row: Mapping[str, Any]) -> str:
    """Return between which tiers records were looked for."""
    return "from producers to the log" if row["tier"] == "log" else f"from the log to group {row['name']}"


def moment(time_ms: int) -> str:
    """Return a moment in UTC, to the second."""
    return datetime.fromtimestamp(time_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def date(time_ms: int) -> str:
    """Return the day of a moment in UTC."""
    return datetime.fromtimestamp(time_ms / 1000, UTC).strftime("%Y-%m-%d")


def heading(column: str) -> str:
    """Return what stands above a column on the page."""
    return HEADINGS.get(column, column.removesuffix("_ms").replace("_", " "))


def cell(column: str, value: Any) -> str:
    """Return a value of a table by what its column holds."""
    if value is None:
        return ""
    if column in DURATIONS:
        return seconds(value)
    if column.endswith("_ms"):
        return moment(value)
    if column in SIZES:
        return sized(value)
    if column == "completeness":
        return f"{value * 100:.3f} %"
    if column == "share":
        return percent(value)
    if column == "cents":
        return f"{value / 100:,.2f}"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.2f}"
    return f"{value:,}" if isinstance(value, int) and column not in ("partition", "leader", "node") else str(value)
