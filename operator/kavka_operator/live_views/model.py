"""Looks at a cluster, one after another, and what follows from two of them.

A look holds what the cluster told. What it did not tell is None or absent; no view may show that as 0.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from kavka_operator.api.quota import AnyEntity
from kavka_operator.domain.observed import SeenPartition
from kavka_operator.domain.transactions import OpenTransaction
from kavka_operator.kafka.broker_metrics import ClientFigures, ClientKey, Page, growth
from kavka_operator.kafka.offsets_and_lag import Ends, Group, LogDirs, Members

LOOKS_MAX = 16


@dataclass(frozen=True, slots=True)
class Look:
    """A cluster at one moment. `pages` are the metrics pages that answered, by the names of their brokers, `silent` the
    number of those that did not; `untold` says in words what the cluster refused to tell.
    """

    at_s: float
    name: str
    members: Members
    controller: int | None = None
    quotas: Mapping[AnyEntity, Mapping[str, float]] | None = None
    ends: Ends | None = None
    transactions: Sequence[OpenTransaction] | None = None
    groups: Mapping[str, Group] | None = None
    log_dirs: Mapping[int, LogDirs] = field(default_factory=dict)
    pages: Mapping[str, Page] = field(default_factory=dict)
    silent: int = 0
    untold: tuple[str, ...] = ()

    def figures(self, key: ClientKey) -> dict[str, ClientFigures]:
        """The figures of a client by broker."""
        return {name: page.clients[key] for name, page in self.pages.items() if key in page.clients}


@dataclass(frozen=True)
class History:
    """The newest looks, the last of them now."""

    looks: tuple[Look, ...]

    def __post_init__(self) -> None:
        assert 0 < len(self.looks) <= LOOKS_MAX, len(self.looks)

    @classmethod
    def after(cls, history: "History | None", look: Look, looks_max: int = LOOKS_MAX) -> "History":
        """The history with one look more; the oldest goes where there are too many."""
        return cls((*history.looks, look)[-looks_max:] if history is not None else (look,))

    @property
    def now(self) -> Look:
        return self.looks[-1]

    @property
    def before(self) -> Look | None:
        return self.looks[-2] if len(self.looks) > 1 else None

    @property
    def seconds(self) -> float:
        """Seconds between the last two looks; 0 where there is only one."""
        return max(0.0, self.now.at_s - self.before.at_s) if self.before is not None else 0.0

    def per_second(self, now: float | None, before: float | None) -> float | None:
        """The growth of a counter a second; None where it is not told, or where it shrank as its broker restarted."""
        if now is None or before is None or now < before or not self.seconds:
            return None
        return (now - before) / self.seconds

    @cached_property
    def by_topic(self) -> dict[str, list[SeenPartition]]:
        """The partitions of each topic, by name."""
        found: dict[str, list[SeenPartition]] = {}
        for partition in self.now.members.partitions:
            found.setdefault(partition.topic, []).append(partition)
        return found

    def rates(self, key: ClientKey) -> dict[str, float | None]:
        """The bytes a second of a client by broker, now."""
        return _rates(key, self.now, self.before)

    def trend(self, key: ClientKey) -> list[float]:
        """The bytes a second of a client at all brokers together, at each look that tells it."""
        looks = zip(self.looks, (None, *self.looks), strict=False)
        rates = (total(_rates(key, look, before).values()) for look, before in looks)
        return [rate for rate in rates if rate is not None]

    def client_keys(self) -> list[ClientKey]:
        """Every client that a metrics page names now."""
        return sorted({key for page in self.now.pages.values() for key in page.clients if key.kind})

    def held(self, key: ClientKey) -> float | None:
        """Seconds a second for which connections of a client were held, each for itself, at the broker with most."""
        before = self.before.figures(key) if self.before is not None else {}
        return greatest(
            self.per_second(figures.throttled_seconds, before[name].throttled_seconds)
            for name, figures in self.now.figures(key).items()
            if name in before
        )


def _rates(key: ClientKey, look: Look, before: Look | None) -> dict[str, float | None]:
    """As the quota measures them; of who is under none, what was counted since the look before."""
    then = before.figures(key) if before is not None else {}
    seconds = look.at_s - before.at_s if before is not None else 0.0
    return {
        name: client.rate if client.rate is not None else growth(client, then.get(name), seconds)
        for name, client in look.figures(key).items()
    }


def used(figures: Mapping[str, ClientFigures]) -> float | None:
    """The part of its limit that a client uses at the broker where it is nearest to it."""
    parts = [client.rate / client.limit for client in figures.values() if client.rate is not None and client.limit]
    return max(parts, default=None)


def greatest(values: Iterable[float | None]) -> float | None:
    """The greatest of the known values; None where there is none."""
    return max((value for value in values if value is not None), default=None)


def total(values: Iterable[float | None]) -> float | None:
    """The sum of the known values; None where there is none."""
    told = [value for value in values if value is not None]
    return sum(told) if told else None
