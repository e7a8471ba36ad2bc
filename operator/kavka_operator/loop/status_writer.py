"""Writes the statuses of resources, announces what has become of them, and logs what lasts once.

Nothing here holds up what is done: a status or a notice that cannot be written is logged.
"""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from datetime import datetime

from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.api.kinds import AnyResource, Key, key_of
from kavka_operator.api.stored_resources import Unreadable, part
from kavka_operator.domain.plan import Action
from kavka_operator.loop.interfaces import NotWrittenError, Resources
from kavka_operator.loop.unexpected_errors import describe
from kavka_operator.reconcile.notices import Notice, invalid, notices
from kavka_operator.reconcile.status import Status, unreadable_status

SAID_SECONDS = 600.0
SAID_MAX = 100  # sentences that are remembered, so that none fills the log

Announce = Callable[[Key, str, Notice], None]
Said = tuple[AnyResource, Status, Sequence[Action]]
"""A resource, the status that is written of it, and what was done for it."""


def to_nobody(key: Key, uid: str, notice: Notice) -> None:
    """Drop a notice, where there is no place for them; the log has the words."""


class StatusWriter:
    """The resources of one cluster as the place of statuses, the log, and who is told what has become of a resource."""

    def __init__(
        self,
        resources: Resources,
        tell: Callable[[str], None],
        send: Announce,
        clock: Callable[[], float],
        now: Callable[[], datetime],
    ) -> None:
        self._resources = resources
        self._tell = tell
        self.send = send
        self._clock = clock
        self._now = now
        self.said: dict[str, float] = {}  # when, by the clock
        self._unreadable: dict[Key, str] = {}

    def say_once(self, words: str) -> None:
        """Say words that may hold for a while, once; and again if they hold after `SAID_SECONDS`."""
        if self._clock() < self.said.get(words, -SAID_SECONDS) + SAID_SECONDS:
            return
        self.said.pop(words, None)
        self.said[words] = self._clock()
        if len(self.said) > SAID_MAX:
            del self.said[next(iter(self.said))]
        self._tell(words)

    def set_status(self, resource: AnyResource, status: Status, done: Sequence[Action] = ()) -> None:
        """Write a status; where that cannot be done, as on a full disk, say so and go on. `done` is announced."""
        try:
            self.write(resource, status, done)
        except (NotWrittenError, OSError) as error:
            self.say_once(f"the status of {resource.identity} cannot be written: {error}")

    def set_statuses(self, said: Sequence[Said]) -> None:
        """Write statuses of many resources together, and announce what was done for each.

        One that cannot be written is told, and stops no other.
        """
        faults = self._resources.set_statuses([(resource, status) for resource, status, _ in said])
        for resource, status, done in said:
            if (error := faults.get(key_of(resource))) is not None:
                self.say_once(f"the status of {resource.identity} cannot be written: {error}")
            self.announce(resource, status, done)

    def write(self, resource: AnyResource, status: Status, done: Sequence[Action] = ()) -> None:
        """Write a status, and announce what has become of the resource. Raises what the place of resources raises."""
        try:
            self._resources.set_status(resource, status)
        finally:
            self.announce(resource, status, done)

    def announce(self, resource: AnyResource, status: Status, done: Sequence[Action] = ()) -> None:
        """Announce what has become of a resource."""
        with self._unhindered():
            for notice in notices(resource, status, done):
                self.send(key_of(resource), resource.metadata.uid, notice)

    @contextmanager
    def _unhindered(self) -> Generator[None]:
        """Announcing never holds up what is done: its fault is told once."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 - the status has what would have been announced
            self.say_once(f"what has become of a resource cannot be announced: {describe(error)}")

    def note_unreadable(self, unreadable: Sequence[Unreadable]) -> None:
        """Show which resources cannot be understood; release deleted ones, as what they have set is unknown.

        Where that cannot be written, such as for a status that another version wrote, the others go on all the same.
        """
        for unread in unreadable:
            try:
                self._note_one_unreadable(unread)
            except (NotWrittenError, OSError) as error:
                self.say_once(f'the status of {unread.key[0]} "{unread.key[2]}" cannot be written: {error}')
        self._unreadable = {unread.key: unread.words for unread in unreadable}

    def _note_one_unreadable(self, unread: Unreadable) -> None:
        name = f'{unread.key[0]} "{unread.key[2]}"'
        if unread.is_deleted and unread.key[0] != KafkaCluster.kind_name:
            self._resources.remove(unread.key)
            self._tell(f"{name} is no longer declared; what it has set in Kafka stays, as it could not be understood")
            return
        if unread.words != self._unreadable.get(unread.key):
            self._tell(f"{name} cannot be understood and is left alone: {unread.words}")
        status = unreadable_status(unread, self._now())
        if status != part(unread.document, "status"):
            with self._unhindered():
                self.send(unread.key, str(part(unread.document, "metadata").get("uid", "")), invalid(unread.words))
        self._resources.note_unreadable(unread, status)
