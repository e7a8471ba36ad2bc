"""When a coordinator does what it does: now, later, a slice a turn, or in a thread."""

from typing import NamedTuple

from kavka_broker.interfaces import Clock
from kavka_broker.loop.request_threads import RequestThreads
from kavka_broker.loop.slices import Slices
from kavka_broker.loop.timers import Timers


class Pacing(NamedTuple):
    """The time of the loop: what it says, what is done later, what is done a slice a turn, and what a thread does."""

    clock: Clock
    timers: Timers
    slices: Slices
    threads: RequestThreads
