"""KafkaUsers: their password, access rules and limits; read and changed for all of them together (`loop.users`)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kavka_operator.api.kinds import Key, Managed
from kavka_operator.api.quota import ClientQuota
from kavka_operator.api.user import KafkaUser, entity_of_user, quota_of
from kavka_operator.domain.observed import SeenCluster
from kavka_operator.domain.plan import KafkaPlan, ManagedAction
from kavka_operator.loop.kinds import quota as quota_kind
from kavka_operator.loop.kinds.claims import Claims, others, owner
from kavka_operator.loop.kinds.kind import Pass
from kavka_operator.quota.shadows import Neighbours
from kavka_operator.reconcile import quotas, users
from kavka_operator.reconcile.status import Status, user_status


def claim(user: KafkaUser) -> object:
    """The user; its limits are a claim of their own."""
    return "user", user.user_name


def limits(user: KafkaUser) -> ClientQuota | None:
    """The limits of the user as a quota."""
    return quota_of(user)


def observe(resources: Sequence[Managed], seen: SeenCluster, run: Pass) -> SeenCluster:
    """The cluster with what it tells of users. Raises AdminError where time may help."""
    return run.users.look(seen, resources)


def plan(user: KafkaUser, seen: SeenCluster, claims: Claims, run: Pass) -> KafkaPlan:
    """The plan for one user, with that for its limits. Raises AdminError where the cluster does not tell."""
    there = run.users.seen(user, seen)
    rivals = [rival for rival in others(claim(user), user, claims) if isinstance(rival, KafkaUser)]
    of_limits: KafkaPlan | None = None
    if (found := quota_of(user)) is not None:
        of_limits = quota_kind.plan(found, seen, claims, run)
    else:
        there = replace(there, quotas=_without_those_of_others(user, there.quotas, claims, seen, run))
    if user.metadata.deletion_timestamp is None:
        return users.reconcile(user, there, run.now, of_limits, owner(user, rivals))
    heir = next((rival for rival in rivals if rival.metadata.deletion_timestamp is None), None)
    return users.retire(user, there, of_limits, heir)


def plan_together(
    resources: Sequence[Managed],
    plans: Mapping[Key, KafkaPlan],
    seen: SeenCluster,
    run: Pass,
) -> tuple[SeenCluster, Mapping[Key, KafkaPlan]]:
    """Plans of users share nothing."""
    return seen, plans


def may_do(user: KafkaUser, plan: KafkaPlan) -> tuple[ManagedAction, ...]:
    """All actions."""
    return plan.actions


def perform(plans: Mapping[Key, KafkaPlan], managed: Mapping[Key, Managed], run: Pass) -> None:
    """Carry out the plans of users, stage by stage."""
    run.users.perform(plans, managed, run.failures, run.done)


def remember(user: KafkaUser, plan: KafkaPlan, seen: SeenCluster, run: Pass) -> dict[str, object]:
    """The password, the rules and the limits that are the resource's own now."""
    return dict(users.remembered(user, plan, run.users.seen(user, seen), run.now))


def status(user: KafkaUser, plan: KafkaPlan, seen: SeenCluster, near: Neighbours, run: Pass) -> Status:
    """The status, with the place of the Secret."""
    return user_status(user, seen, plan.words, run.now, run.users.location(user))


def _without_those_of_others(
    user: KafkaUser, values: Mapping[str, float], claims: Claims, seen: SeenCluster, run: Pass
) -> Mapping[str, float]:
    """The limits of a user in Kafka that no ClientQuota wants."""
    claimants = [other for other in claims.get(entity_of_user(user), ()) if isinstance(other, ClientQuota)]
    staying = [other for other in claimants if other.metadata.deletion_timestamp is None]
    wanted = {key for other in staying for key in quotas.target_values(other, seen.brokers_to_be, run.now)}
    return {key: value for key, value in values.items() if key not in wanted}
