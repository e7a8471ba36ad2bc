"""Log directories that are away or nearly full."""

from collections.abc import Iterator

from kavka_operator.doctor.evidence import Examined, Finding, Severity, listed

NEARLY_FULL, FULL = 0.85, 0.95


def judged(seen: Examined) -> Iterator[Finding]:
    """The findings about disks."""
    every = [(broker.id, place) for broker in seen.brokers for place in broker.log_dirs or ()]
    away = [f"broker {number}: {place.path} ({place.error})" for number, place in every if place.error]
    if away:
        what = f"{len(away)} log directories are offline, with the replicas on them"
        yield Finding(Severity.CRITICAL, "disk-offline", what, listed(away), "mend the disk, and restart the broker")
    for severity, least, most in ((Severity.CRITICAL, FULL, 2.0), (Severity.WARNING, NEARLY_FULL, FULL)):
        full = [
            f"broker {number}: {place.path} ({place.fullness:.0%})"
            for number, place in every
            if place.fullness is not None and least <= place.fullness < most
        ]
        if full:
            what = f"{len(full)} log directories are nearly full"
            yield Finding(severity, "disk-full", what, listed(full), "shorten retention, add a disk, or move replicas")
