"""Looks at a real cluster: Kafka's admin protocol for what every Kafka tells, and the brokers' metrics pages."""

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Protocol, TypeVar

from kavka_operator.domain.transactions import OpenTransaction
from kavka_operator.kafka.admin import AdminError
from kavka_operator.kafka.broker_metrics import Page, fetch_page, read_pages
from kavka_operator.kafka.offsets_and_lag import READ_COMMITTED, Ends, LogDirs, Members, Onlooker
from kavka_operator.live_views.model import Look

T = TypeVar("T")

PARTITIONS_MAX = 20_000


class Source(Protocol):
    """A source of looks."""

    def take(self) -> Look:
        """The cluster now. Raises AdminError where no broker answers."""
        ...

    def close(self) -> None:
        """Let go of the connections."""
        ...


class ClusterSource:
    """Looks at a cluster through its bootstrap addresses and the URLs of its brokers' metrics pages."""

    def __init__(
        self,
        name: str,
        bootstrap: str,
        urls: Sequence[str] = (),
        connect: Callable[[str], Onlooker] = Onlooker,
        read: Callable[[str], Page | None] = fetch_page,
        partitions_max: int = PARTITIONS_MAX,
    ) -> None:
        self._partitions_max = partitions_max
        self._name, self._bootstrap, self._urls = name, bootstrap, tuple(urls)
        self._connect, self._read = connect, read
        self._admin: Onlooker | None = None
        self._refused: list[str] = []
        self._is_stale = False

    def take(self) -> Look:
        self._refused, self._is_stale = [], False
        try:
            if self._admin is None:
                self._admin = self._connect(self._bootstrap)
            look = self._look(self._admin, self._admin.members())
        except AdminError:
            self.close()
            raise
        if self._is_stale:
            self.close()  # connections to other brokers may answer what failed for a while
        return look

    def close(self) -> None:
        admin, self._admin = self._admin, None
        if admin is not None:
            admin.close()

    def _look(self, admin: Onlooker, members: Members) -> Look:
        pages = read_pages(self._urls, self._read)
        partitions = members.partitions
        if is_too_many := len(partitions) > self._partitions_max:
            self._refused.append(f"ends of logs are not asked for of more than {self._partitions_max} partitions")
        ends = None if is_too_many else self._told(partial(admin.ends, partitions))
        return Look(
            at_s=time.monotonic(),
            name=self._name,
            members=members,
            controller=self._told(admin.controller),
            quotas=self._told(admin.quotas),
            ends=ends,
            transactions=self._told(partial(_transactions, admin, members, ends)),
            groups=self._told(admin.groups),
            log_dirs=self._log_dirs(admin, members),
            pages=pages,
            silent=len(self._urls) - len(pages),
            untold=tuple(self._refused),
        )

    def _log_dirs(self, admin: Onlooker, members: Members) -> Mapping[int, LogDirs]:
        asked = {broker: self._told(partial(admin.log_dirs, broker)) for broker in members.brokers}
        return {broker: told for broker, told in asked.items() if told is not None}

    def _told(self, ask: Callable[[], T]) -> T | None:
        """The value in an answer; None where it is refused, with the words for that noted."""
        try:
            return ask()
        except AdminError as error:
            self._refused.append(str(error))
            self._is_stale |= error.retriable
            return None


def _transactions(admin: Onlooker, members: Members, ends: Ends | None) -> list[OpenTransaction]:
    """The open transactions; without ends, what coordinators tell of them alone."""
    stable = {} if ends is None else admin.ends(members.partitions, isolation_level=READ_COMMITTED)
    return admin.transactions(sorted(members.brokers), members.partitions, ends or {}, stable)
