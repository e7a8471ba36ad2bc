"""Runs one reconciliation pass over the topics, quotas and users of a cluster: observe, plan, act, observe again.

That is repeated until nothing is left to do (`ROUNDS_MAX` at most). The last round is also what the statuses are
computed from, so that a status never claims what was only asked for. One request fetches all topics and one all quotas,
however many resources there are. How a kind is planned, carried out and shown is in its module of `loop.kinds`.
Whatever goes wrong with one resource, by a refusal of Kafka's or by a fault of our own, is that resource's condition.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from kavka_operator.api.kinds import Key, Managed, key_of
from kavka_operator.api.topic import Topic
from kavka_operator.domain.observed import SeenCluster
from kavka_operator.domain.plan import KafkaPlan, ManagedAction, Plan, Word
from kavka_operator.kafka.admin import Admin, BarredError
from kavka_operator.loop.kinds.kind import Pass
from kavka_operator.loop.kinds.table import KINDS, claims_of, kind_of
from kavka_operator.loop.observation import Observation
from kavka_operator.loop.passwords import Passwords
from kavka_operator.loop.resource_errors import Failures
from kavka_operator.loop.unexpected_errors import UnexpectedErrors
from kavka_operator.loop.users import Users
from kavka_operator.quota.shadows import Neighbours
from kavka_operator.reconcile.drift import correction
from kavka_operator.reconcile.external import FORGET_CLUSTER
from kavka_operator.reconcile.pause import held_back, is_paused
from kavka_operator.reconcile.status import Status, with_words

ROUNDS_MAX = 4


@dataclass(slots=True)
class Outcome:
    """The result of `converge`: statuses, deleted resources that can be released, and what was done for which."""

    cluster: SeenCluster
    statuses: dict[Key, Status] = field(default_factory=dict)
    released: list[Key] = field(default_factory=list)
    steps: list[tuple[Key, ManagedAction]] = field(default_factory=list)

    @property
    def done(self) -> list[ManagedAction]:
        """The actions that were done, in their order."""
        return [action for _, action in self.steps]

    def done_by_key(self) -> dict[Key, list[ManagedAction]]:
        """The actions that were done, by the resource that they were done for."""
        found: dict[Key, list[ManagedAction]] = {}
        for key, action in self.steps:
            found.setdefault(key, []).append(action)
        return found


def converge(
    observation: Observation,
    admin: Admin,
    unexpected_errors: UnexpectedErrors | None = None,
    passwords: Passwords | None = None,
) -> Outcome:
    """Bring the cluster to what the resources want, and say how it stands. Raises AdminError if it cannot be seen.

    `unexpected_errors` outlast the pass; `passwords` are where users have theirs. Raises BarredError where the cluster
    is not the one that has the id of the observation; nothing is done there.
    """
    resources = _permitted(observation)
    run = _pass(observation, admin, unexpected_errors or UnexpectedErrors(_untold), passwords or Passwords())
    run.failures.hold_back(resources)
    managed: dict[Key, Managed] = {key_of(resource): resource for resource in resources}
    asked: dict[Key, tuple[ManagedAction, ...]] = {}
    for _ in range(ROUNDS_MAX):
        # Usage is for the first round: a budget moves one step a look, so that every broker has heard of the last one.
        usage = {} if run.done else observation.usage
        found = _recognised(admin.look(_topic_names(resources)), observation.cluster_id)
        seen, plans = _plans(list(managed.values()), observation.completed(found, usage), run)
        open_plans = _unasked(_open(managed, plans, run), asked)
        if not open_plans:
            break
        asked |= {key: (*asked.get(key, ()), *plan.actions) for key, plan in open_plans.items()}
        _perform(open_plans, managed, run)
        managed |= _remembered(open_plans, managed, seen, run)
    else:
        found = _recognised(admin.look(_topic_names(resources)), observation.cluster_id)
        seen, plans = _plans(list(managed.values()), observation.completed(found, {}), run)
    outcome = _outcome(managed, plans, replace(seen, usage=observation.usage), run)
    _tell_refused(observation, outcome)
    return outcome


def _pass(
    observation: Observation, admin: Admin, unexpected_errors: UnexpectedErrors, passwords: Passwords | None
) -> Pass:
    """A pass that has not begun; without `passwords` it only plans."""
    now = observation.now
    users = Users(admin, passwords, now, observation.declared)
    return Pass(admin, now, Failures(unexpected_errors, now), users, frozenset(observation.claimed), observation.paused)


def _permitted(observation: Observation) -> list[Managed]:
    """The resources that may do something here."""
    return [resource for resource in observation.resources if key_of(resource) not in observation.refused]


def _topic_names(resources: Iterable[Managed]) -> set[str]:
    return {resource.topic_name for resource in resources if isinstance(resource, Topic)}


def _recognised(seen: SeenCluster, cluster_id: str | None) -> SeenCluster:
    """The cluster, if it is the one that was there before. Raises BarredError."""
    if cluster_id is None or seen.cluster_id == cluster_id:
        return seen
    raise BarredError(
        "ClusterReplaced",
        f"spec.external.bootstrapServers leads to another Kafka, with the cluster id {seen.cluster_id}; it was"
        f" {cluster_id}. Nothing is done there: name the addresses of the former, or accept this with the annotation"
        f" {FORGET_CLUSTER}={cluster_id}",
    )


def plan_once(observation: Observation, admin: Admin) -> tuple[SeenCluster, dict[Key, KafkaPlan]]:
    """Plans that `converge` would carry out first; nothing is done. Raises AdminError if no broker answers."""
    resources, run = _permitted(observation), _pass(observation, admin, UnexpectedErrors(_untold), None)
    seen, plans = _plans(resources, observation.completed(admin.look(_topic_names(resources)), {}), run)
    hindered = (*run.failures.words.items(), *observation.refused.items())
    return seen, plans | {key: Plan(words=words) for key, words in hindered}


def _tell_refused(observation: Observation, outcome: Outcome) -> None:
    """Note the words of refused resources; one that is deleted is released, and what it has set stays."""
    for resource in observation.resources:
        if (words := observation.refused.get(key_of(resource))) is None:
            continue
        if resource.metadata.deletion_timestamp is not None:
            outcome.released.append(key_of(resource))
        else:
            outcome.statuses[key_of(resource)] = _with_words(resource, words, observation.now, outcome.cluster)


def _untold(words: str) -> None:
    """Drop the words; the status has them."""


def _plans(resources: Sequence[Managed], seen: SeenCluster, run: Pass) -> tuple[SeenCluster, dict[Key, KafkaPlan]]:
    """A plan for each resource, and the cluster with what more they depend on: records, access, rates of brokers."""
    for kind in KINDS.values():
        seen = kind.observe(resources, seen, run)
    plans: Mapping[Key, KafkaPlan] = _plan_each(resources, seen, run)
    for kind in KINDS.values():
        seen, plans = kind.plan_together(resources, plans, seen, run)
    return seen, dict(plans)


def _plan_each(resources: Sequence[Managed], seen: SeenCluster, run: Pass) -> dict[Key, KafkaPlan]:
    """A plan for each resource; deleted ones come first, so that another resource can take their topic or entity."""
    claims = claims_of(resources)
    plans: dict[Key, KafkaPlan] = dict.fromkeys(map(key_of, resources), Plan())
    for resource in sorted(resources, key=lambda resource: resource.metadata.deletion_timestamp is None):
        if key_of(resource) in run.failures:
            continue
        with run.failures.over(resource):
            plan = kind_of(resource).plan(resource, seen, claims, run)
            plans[key_of(resource)] = held_back(plan) if run.paused or is_paused(resource) else plan
    return plans


def _open(managed: Mapping[Key, Managed], plans: Mapping[Key, KafkaPlan], run: Pass) -> dict[Key, KafkaPlan]:
    """The plans with something to do now."""
    found = {}
    for key, plan in plans.items():
        actions = tuple(kind_of(managed[key]).may_do(managed[key], plan))
        if actions and key not in run.failures:
            found[key] = replace(plan, actions=actions)
    return found


def _unasked(plans: Mapping[Key, KafkaPlan], asked: Mapping[Key, Collection[ManagedAction]]) -> dict[Key, KafkaPlan]:
    """The plans without what was asked for already: the broker that was looked at has not heard of all of it yet."""
    left = {
        key: tuple(action for action in plan.actions if action not in asked.get(key, ())) for key, plan in plans.items()
    }
    return {key: replace(plan, actions=left[key]) for key, plan in plans.items() if left[key]}


def _perform(plans: Mapping[Key, KafkaPlan], managed: Mapping[Key, Managed], run: Pass) -> None:
    """Carry out plans, those of users last."""
    for perform in dict.fromkeys(kind.perform for kind in KINDS.values()):
        if own := {key: plan for key, plan in plans.items() if kind_of(managed[key]).perform == perform}:
            perform(own, managed, run)


def _remembered(
    plans: Mapping[Key, KafkaPlan], managed: Mapping[Key, Managed], seen: SeenCluster, run: Pass
) -> dict[Key, Managed]:
    """The resources with the settings that the plans' actions make their own, for the next round."""
    found: dict[Key, Managed] = {}
    for key, plan in plans.items():
        if key in run.failures:
            continue
        with run.failures.over(resource := managed[key]):
            last = correction(resource, plan, seen, run.now)
            fields = kind_of(resource).remember(resource, plan, seen, run)
            status = resource.status.replaced({**fields, "last_correction": last})
            found[key] = resource.replaced({"status": status})
    return found


def _outcome(resources: Mapping[Key, Managed], plans: Mapping[Key, KafkaPlan], seen: SeenCluster, run: Pass) -> Outcome:
    outcome, near = Outcome(seen, steps=run.done), Neighbours(seen.quotas)
    for key, resource in resources.items():
        is_kept = run.paused or is_paused(resource) or key in run.failures
        if resource.metadata.deletion_timestamp is not None and not is_kept:
            outcome.released.append(key)
            continue
        with run.failures.over(resource):
            plan = replace(plans[key], words=run.failures.words.get(key, plans[key].words))
            outcome.statuses[key] = kind_of(resource).status(resource, plan, seen, near, run)
        if key not in outcome.statuses:
            outcome.statuses[key] = _with_words(resource, run.failures.words[key], run.now, seen)
    run.failures.forgive(resources)
    return outcome


def _with_words(resource: Managed, words: Sequence[Word], now: datetime, seen: SeenCluster) -> Status:
    return with_words(resource, words, now, is_external=seen.is_external, knows_users=seen.knows_users)
