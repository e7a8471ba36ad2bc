"""Where a share group begins to read a partition: `share.auto.offset.reset`."""

import re
from typing import Final

LATEST: Final = "latest"
EARLIEST: Final = "earliest"
_DURATION: Final = re.compile(
    r"by_duration:P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?", re.IGNORECASE
)
_UNITS_MS: Final = (86_400_000, 3_600_000, 60_000, 1_000)


def duration_ms(setting: str) -> int | None:
    """Return how long ago the first record may be; None for a setting that names an end."""
    found = _DURATION.fullmatch(setting)
    if found is None:
        return None
    parts = zip(found.groups(), _UNITS_MS, strict=True)
    return int(sum(float(number) * unit_ms for number, unit_ms in parts if number))
