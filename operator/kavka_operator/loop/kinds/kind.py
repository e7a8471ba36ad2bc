"""The protocol of a kind's module, and the state of the pass that its functions are given."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol, TypeVar

from kavka_operator.api.kinds import Key, Managed
from kavka_operator.api.quota import ClientQuota
from kavka_operator.domain.observed import SeenCluster
from kavka_operator.domain.plan import KafkaPlan, ManagedAction
from kavka_operator.kafka.admin import Admin
from kavka_operator.loop.kinds.claims import Claims
from kavka_operator.loop.resource_errors import Failures
from kavka_operator.loop.users import Users
from kavka_operator.quota.shadows import Neighbours
from kavka_operator.reconcile.status import Status

R_contra = TypeVar("R_contra", bound=Managed, contravariant=True)


@dataclass(slots=True)
class Pass:
    """One reconciliation pass over the resources of a cluster.

    `claimed` are topics that unreadable resources name; with `paused` nothing is changed. `done` are the actions that
    were carried out, each with the resource that it was for.
    """

    admin: Admin
    now: datetime
    failures: Failures
    users: Users
    claimed: Collection[str] = ()
    paused: bool = False
    done: list[tuple[Key, ManagedAction]] = field(default_factory=list)


class Kind(Protocol[R_contra]):
    """A module of `loop.kinds`. Errors are of one resource, unless it is said otherwise."""

    def claim(self, resource: R_contra, /) -> object:
        """The name, entity or user that only one resource can own."""
        ...

    def limits(self, resource: R_contra, /) -> ClientQuota | None:
        """The quota that a resource of another kind brings with it."""
        ...

    def observe(self, resources: Sequence[Managed], seen: SeenCluster, run: Pass, /) -> SeenCluster:
        """The cluster with what plans of this kind need besides. Raises AdminError where no plan can be made."""
        ...

    def plan(self, resource: R_contra, seen: SeenCluster, claims: Claims, run: Pass, /) -> KafkaPlan:
        """The plan for a resource. Raises AdminError where its cluster does not tell."""
        ...

    def plan_together(
        self, resources: Sequence[Managed], plans: Mapping[Key, KafkaPlan], seen: SeenCluster, run: Pass, /
    ) -> tuple[SeenCluster, Mapping[Key, KafkaPlan]]:
        """The plans with what they share, such as the bandwidth of brokers. Raises AdminError."""
        ...

    def may_do(self, resource: R_contra, plan: KafkaPlan, /) -> Iterable[ManagedAction]:
        """The actions of a plan that may be done in this pass."""
        ...

    def perform(self, plans: Mapping[Key, KafkaPlan], managed: Mapping[Key, Managed], run: Pass, /) -> None:
        """Carry out plans; kinds with the same function are carried out together."""
        ...

    def remember(self, resource: R_contra, plan: KafkaPlan, seen: SeenCluster, run: Pass, /) -> dict[str, object]:
        """The fields of the status that follow from a plan that was carried out."""
        ...

    def status(self, resource: R_contra, plan: KafkaPlan, seen: SeenCluster, near: Neighbours, run: Pass, /) -> Status:
        """The status at the end of a pass."""
        ...
