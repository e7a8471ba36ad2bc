"""ClientQuotas, and the limits of KafkaUsers, which claim entities as quotas do."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kavka_operator.api.kinds import Key, Managed
from kavka_operator.api.quota import ClientQuota, entity_of
from kavka_operator.domain.observed import SeenCluster
from kavka_operator.domain.plan import KafkaPlan, ManagedAction, Word
from kavka_operator.domain.quota_entities import entity_text
from kavka_operator.loop.batched_actions import perform_in_batches
from kavka_operator.loop.kinds.claims import Claims, others, owner
from kavka_operator.loop.kinds.kind import Pass
from kavka_operator.quota.shadows import Neighbours
from kavka_operator.reconcile import quota_budgets as budgets
from kavka_operator.reconcile import quotas, users
from kavka_operator.reconcile.status import Status, quota_status


def claim(quota: ClientQuota) -> object:
    """The entity that is limited."""
    return entity_of(quota.spec.entity)


def limits(quota: ClientQuota) -> ClientQuota | None:
    """A quota brings no other one."""
    return None


def observe(resources: Sequence[Managed], seen: SeenCluster, run: Pass) -> SeenCluster:
    """All quotas were read with the cluster."""
    return seen


def plan(quota: ClientQuota, seen: SeenCluster, claims: Claims, run: Pass) -> KafkaPlan:
    """The plan for one quota; of one that is deleted, what another resource wants for the entity stays."""
    rivals = [rival for rival in others(claim(quota), quota, claims) if isinstance(rival, ClientQuota)]
    values, brokers = seen.quotas.get(entity_of(quota.spec.entity), {}), seen.brokers_to_be
    if quota.metadata.deletion_timestamp is not None:
        heir = next((rival for rival in rivals if rival.metadata.deletion_timestamp is None), None)
        return quotas.retire(quota, values, _target(heir, seen, run) if heir else {})
    found = quotas.reconcile(quota, values, brokers, run.now, owner(quota, rivals), budgets.parts(quota, seen))
    return replace(found, words=(*found.words, *_contested(quota, rivals)))


def plan_together(
    resources: Sequence[Managed],
    plans: Mapping[Key, KafkaPlan],
    seen: SeenCluster,
    run: Pass,
) -> tuple[SeenCluster, Mapping[Key, KafkaPlan]]:
    """Plans of quotas share nothing."""
    return seen, plans


def may_do(quota: ClientQuota, plan: KafkaPlan) -> tuple[ManagedAction, ...]:
    """All actions."""
    return plan.actions


perform = perform_in_batches


def remember(quota: ClientQuota, plan: KafkaPlan, seen: SeenCluster, run: Pass) -> dict[str, object]:
    """The values that Kafka has for the entity now."""
    return {"applied": _target(quota, seen, run), "applied_time": run.now}


def status(quota: ClientQuota, plan: KafkaPlan, seen: SeenCluster, near: Neighbours, run: Pass) -> Status:
    """The status, with the quotas that win over this one."""
    return quota_status(quota, seen, plan.words, run.now, near)


def _target(quota: ClientQuota, seen: SeenCluster, run: Pass) -> dict[str, float]:
    return {**quotas.target_values(quota, seen.brokers_to_be, run.now), **budgets.parts(quota, seen)}


def _contested(quota: ClientQuota, rivals: Sequence[ClientQuota]) -> list[Word]:
    """The word for a quota that wins over a younger resource of the other kind, which is told of it too."""
    younger = [
        rival
        for rival in rivals
        if rival.kind_name != quota.kind_name
        and rival.metadata.deletion_timestamp is None
        and rival.seniority > quota.seniority
    ]
    entity = entity_text(entity_of(quota.spec.entity))
    return [users.contested(rival.identity, entity) for rival in younger[:1]] if owner(quota, rivals) is None else []
