"""When a consumer group's member was to be heard of, or to have given up what it had to (KIP-848).

The timers are soft: a broker that takes the groups over starts each member's session again.
"""

from collections.abc import Callable
from enum import Enum, auto

from kavka_broker.loop.timers import Timer, Timers


class TimerKind(Enum):
    """The event that a member's timer waits for."""

    SESSION = auto()  # a heartbeat
    REVOCATION = auto()  # the end of what it has to give up
    JOIN = auto()  # a JoinGroup, of a member of the classic protocol that was told to join again
    SYNC = auto()  # its SyncGroup after that


Expired = Callable[[str, TimerKind, str, int | None], None]
"""Called with the group's id, the kind, the member's id, and the epoch of the member where the timer is for that."""


class MemberTimers:
    """The timers of all members; one of each kind a member. One that has fired is overdue until it is stopped, or
    started again: its member may be heard of before the event of its silence has its turn.
    """

    def __init__(self, timers: Timers, expired: Expired) -> None:
        self._timers = timers
        self._expired = expired
        self.running: dict[str, dict[tuple[TimerKind, str], Timer | None]] = {}  # None: overdue

    def is_overdue(self, group_id: str, kind: TimerKind, member_id: str) -> bool:
        """Whether the timer has fired, and was neither stopped nor started since."""
        return self.running.get(group_id, {}).get((kind, member_id), self) is None

    def start(self, group_id: str, kind: TimerKind, member_id: str, delay_ms: int, epoch: int | None = None) -> None:
        """Start a timer, or start it again."""
        timers = self.running.setdefault(group_id, {})
        running = timers.pop((kind, member_id), None)
        if running is not None:
            running.cancel()
        timers[kind, member_id] = self._timers.after(delay_ms, self._fire, group_id, kind, member_id, epoch)

    def start_if_absent(self, group_id: str, kind: TimerKind, member_id: str, delay_ms: int) -> None:
        """Start a timer, unless it runs or is overdue."""
        if (kind, member_id) not in self.running.get(group_id, {}):
            self.start(group_id, kind, member_id, delay_ms)

    def stop_member(self, group_id: str, member_id: str) -> None:
        """Stop the timers of a member."""
        for kind in TimerKind:
            self.stop(group_id, kind, member_id)

    def stop(self, group_id: str, kind: TimerKind, member_id: str) -> None:
        running = self.running.get(group_id, {}).get((kind, member_id))
        if running is not None:
            running.cancel()
        timers = self.running.get(group_id, {})
        timers.pop((kind, member_id), None)
        if not timers:
            self.running.pop(group_id, None)

    def stop_all(self, group_id: str) -> None:
        """Stop the timers of a group."""
        for timer in self.running.pop(group_id, {}).values():
            if timer is not None:
                timer.cancel()

    def close(self) -> None:
        """Stop all timers."""
        for group_id in list(self.running):
            self.stop_all(group_id)

    def _fire(self, group_id: str, kind: TimerKind, member_id: str, epoch: int | None) -> None:
        self.running[group_id][kind, member_id] = None
        self._expired(group_id, kind, member_id, epoch)
