"""The figures of how far groups are behind."""

from collections.abc import Iterator

from kavka_broker.coordinator.groups.group_lag import GroupLag
from kavka_broker.core.client_names import label_of
from kavka_broker.core.group.lag import LEVELS
from kavka_broker.runtime.partition_figures import Sample


def lag_samples(lag: GroupLag) -> Iterator[Sample]:
    """Yield the lag of the last round; what is not known has no sample."""
    figures = lag.figures
    if figures is None:
        return
    yield "kavka_group_lag_age_seconds", (), lag.age_ms(figures) / 1000
    yield "kavka_series_omitted", ("group",), figures.omitted
    for found in figures.lags:
        names = label_of(found.group), label_of(found.topic)
        for level, records, seconds in zip(LEVELS, found.records, found.seconds, strict=True):
            if records is not None:
                yield "kavka_group_lag_records", (*names, level), records
            if seconds is not None:
                yield "kavka_group_lag_seconds", (*names, level), seconds
