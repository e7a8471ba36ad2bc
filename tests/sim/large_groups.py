"""How large a consumer group is for which a thread works out what a command comes to: groups of a run are all small."""

from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from typing import Final

from kavka_broker.core.consumer_group import heartbeat

STEPS: Final = (0, 8, heartbeat.AT_ONCE_STEPS_MAX)


@contextmanager
def large_by(seed: int) -> Iterator[None]:
    """Have threads work for all groups, for some or for none, as the seed draws it."""
    before = heartbeat.AT_ONCE_STEPS_MAX
    heartbeat.AT_ONCE_STEPS_MAX = Random(f"large groups {seed}").choice(STEPS)  # type: ignore[misc]
    try:
        yield
    finally:
        heartbeat.AT_ONCE_STEPS_MAX = before  # type: ignore[misc]
