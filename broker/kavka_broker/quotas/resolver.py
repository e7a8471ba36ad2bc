"""Which limit holds for a client, and with whom it shares the allowance: the seam behind `Shares`.

`KafkaRule` is Apache Kafka's, by the limits in the metadata. A callback class (`quotas.callback_runner`) is the other.
"""

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from kavka_broker.core.quota.entity import Entity, Prefix
from kavka_broker.core.quota.resolve import Effective, Share, resolve, share_of


class Standing(NamedTuple):
    """What holds for one client: the quota that applies, None where there is none, and the share it draws on."""

    effective: Effective | None
    share: Share


class Rule(Protocol):
    """Finds the quota of a client. Called once for each client and change, not for each request."""

    def find(self, user: str, client_id: str) -> Standing: ...

    def update(self, limits: Mapping[Entity, float]) -> None:
        """Other limits hold in the metadata."""


class KafkaRule:
    """The most specific of the eight levels."""

    def __init__(self) -> None:
        self._limits: Mapping[Entity, float] = {}
        self._prefix_lengths: tuple[int, ...] = ()

    def find(self, user: str, client_id: str) -> Standing:
        effective = resolve(self._limits, user, client_id, self._prefix_lengths)
        return Standing(
            effective, Share(user, client_id) if effective is None else share_of(effective, user, client_id)
        )

    def update(self, limits: Mapping[Entity, float]) -> None:
        self._limits = limits
        lengths = {len(entity.client_id.text) for entity in limits if isinstance(entity.client_id, Prefix)}
        self._prefix_lengths = tuple(sorted(lengths, reverse=True))
