"""A clock of this machine that a test can stop, for what has to happen at once, however long it takes."""

from kavka_broker.runtime.clock import SystemClock


class StoppedClock(SystemClock):
    """The time of this machine until it is stopped: no quota recovers then, and no client has waited long enough."""

    __slots__ = ("_stopped_ms",)

    def __init__(self) -> None:
        self._stopped_ms: float | None = None

    def stop(self) -> None:
        self._stopped_ms = super().monotonic_ms()

    def go_on(self) -> None:
        """Catch up with the machine."""
        self._stopped_ms = None

    def monotonic_ms(self) -> float:
        return super().monotonic_ms() if self._stopped_ms is None else self._stopped_ms
