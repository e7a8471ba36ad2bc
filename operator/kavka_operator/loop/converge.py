"""One look at a cluster and what follows from it: the shell around the pure reconcilers.

Look, reconcile every resource, carry out the actions, look again, until there is nothing left to do (`ROUNDS_MAX` at
most). The last look is also what the statuses are computed from, so a status never claims what was only asked for. One
request fetches all topics and one all quotas, however many resources there are. Whatever goes wrong with one resource,
by a refusal of Kafka's or by a fault of our own, is that resource's condition; the others go on. What users need beside
that, `loop.people` looks at and carries out.
"""

from collections.abc import Collection, Generator, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import groupby
from typing import TypeVar

from kavka_operator.api.kinds import Key, Managed, key_of
from kavka_operator.api.quota import ClientQuota, entity_of
from kavka_operator.api.topic import Topic
from kavka_operator.api.user import KafkaUser, entity_of_user, quota_of
from kavka_operator.domain.entities import entity_text
from kavka_operator.domain.plan import (
    AlterQuota,
    CreateTopic,
    KafkaPlan,
    ManagedAction,
    Plan,
    Word,
    reconciling,
    stalled,
)
from kavka_operator.domain.seen import SeenCluster, SeenTopic
from kavka_operator.kafka.admin import Admin, AdminError, BarredError, ThrottledError
from kavka_operator.loop.mishaps import Mishaps
from kavka_operator.loop.observation import Observation, Usage
from kavka_operator.loop.passwords import Passwords
from kavka_operator.loop.people import NO_ADMIN_ACTIONS, People
from kavka_operator.quota.shadows import Neighbours
from kavka_operator.reconcile import budgets, moves, quotas, topics, users
from kavka_operator.reconcile.drift import correction
from kavka_operator.reconcile.external import FORGET_CLUSTER
from kavka_operator.reconcile.pause import held_back, is_paused
from kavka_operator.reconcile.status import Status, quota_status, topic_status, user_status, with_words

ROUNDS_MAX = 4
BATCH_MAX = 200

Claimant = TypeVar("Claimant", Topic, ClientQuota, KafkaUser)


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
    observation: Observation, admin: Admin, mishaps: Mishaps | None = None, passwords: Passwords | None = None
) -> Outcome:
    """Bring the cluster to what the resources want, and say how it stands. Raises AdminError if it cannot be seen.

    `mishaps` remembers faults from one pass to the next; `passwords` are where users have theirs. Raises BarredError
    where the cluster is not the one that has the id of the observation; nothing is done there.
    """
    now, resources = observation.now, _permitted(observation)
    guard = _Guard(mishaps or Mishaps(_untold), now, frozenset(observation.claimed), observation.paused)
    people = People(admin, passwords or Passwords(), now, observation.declared)
    managed: dict[Key, Managed] = {key_of(resource): resource for resource in resources}
    done: list[tuple[Key, ManagedAction]] = []
    guard.hold_back(resources)
    asked: dict[Key, tuple[ManagedAction, ...]] = {}

    def look(usage: Usage) -> SeenCluster:
        found = _recognised(admin.look(_topic_names(resources)), observation.cluster_id)
        return people.look(observation.completed(found, usage), managed.values())

    for _ in range(ROUNDS_MAX):
        # Usage is for the first round: a budget moves one step a look, so that every broker has heard of the last one.
        found = look({} if done else observation.usage)
        seen, plans = _plans(list(managed.values()), found, now, guard, people)
        open_plans = _unasked(_open(managed, plans, guard), asked)
        if not open_plans:
            break
        asked |= {key: (*asked.get(key, ()), *plan.actions) for key, plan in open_plans.items()}
        of_users = {key: plan for key, plan in open_plans.items() if isinstance(managed[key], KafkaUser)}
        for group in _groups({key: plan for key, plan in open_plans.items() if key not in of_users}):
            _perform_together(group, open_plans, managed, guard, admin, done)
        people.perform(of_users, managed, guard, done)
        for key, plan in open_plans.items():
            if key not in guard.failures:
                with guard.over(managed[key]):
                    managed[key] = _remember(managed[key], plan, seen, now, people)
    else:
        seen, plans = _plans(list(managed.values()), look({}), now, guard, people)
    outcome = _outcome(managed, plans, guard, replace(seen, usage=observation.usage), done, people)
    _tell_refused(observation, outcome)
    return outcome


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
    now, resources = observation.now, _permitted(observation)
    guard = _Guard(Mishaps(_untold), now, frozenset(observation.claimed), observation.paused)
    people = People(admin, None, now, observation.declared)
    found = people.look(observation.completed(admin.look(_topic_names(resources)), {}), resources)
    seen, plans = _plans(resources, found, now, guard, people)
    hindered = (*guard.failures.items(), *observation.refused.items())
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


@dataclass(slots=True)
class _Guard:
    """The failures of this look, by resource; the other resources go on."""

    mishaps: Mishaps
    now: datetime
    claimed: frozenset[str] = frozenset()
    paused: bool = False
    failures: dict[Key, tuple[Word, ...]] = field(default_factory=dict)
    faulty: set[Key] = field(default_factory=set)

    def hold_back(self, resources: Iterable[Managed]) -> None:
        """Leave out the resources whose last fault is too recent to try them again."""
        for resource in resources:
            if words := self.mishaps.waiting(key_of(resource), self.now, _version_of(resource)):
                self.failures[key_of(resource)] = words
                self.faulty.add(key_of(resource))

    @contextmanager
    def over(self, resource: Managed) -> Generator[None]:
        """Note an error in the block as the failure of this resource alone."""
        key = key_of(resource)
        try:
            yield
        except AdminError as error:
            self.failures[key] = (reconciling if error.retriable else stalled)(
                "Throttled" if isinstance(error, ThrottledError) else "Failing" if error.retriable else "Rejected",
                str(error),
            )
        except Exception as error:  # noqa: BLE001 - a fault of ours, which is shown and told
            self.failures[key] = self.mishaps.note(key, error, self.now, _version_of(resource))
            self.faulty.add(key)

    def forgive(self, keys: Iterable[Key]) -> None:
        """Forget the faults of resources that went well."""
        for key in keys:
            if key not in self.faulty:
                self.mishaps.clear(key)


def _version_of(resource: Managed) -> Hashable:
    """A value that changes with the parts of a resource that a person writes."""
    annotations = tuple(sorted(resource.metadata.annotations.items()))
    return resource.metadata.generation, annotations, resource.metadata.deletion_timestamp


def _untold(words: str) -> None:
    """Drop the words; the status has them."""


def plan_all(
    resources: Sequence[Managed], seen: SeenCluster, now: datetime, guard: _Guard, people: People
) -> dict[Key, KafkaPlan]:
    """A plan for each resource; deleted ones come first, so that another resource can take their topic or entity."""
    claims = claims_of(resources)
    plans: dict[Key, KafkaPlan] = dict.fromkeys(map(key_of, resources), Plan())
    for resource in sorted(resources, key=lambda resource: resource.metadata.deletion_timestamp is None):
        if key_of(resource) in guard.failures:
            continue
        with guard.over(resource):
            plans[key_of(resource)] = _plan(resource, seen, claims, guard, people)
    return plans


def _plan(
    resource: Managed, seen: SeenCluster, claims: Mapping[object, Sequence[Managed]], guard: _Guard, people: People
) -> KafkaPlan:
    others = _others(resource, claims)
    match resource:
        case Topic():
            plan = _plan_topic(resource, seen, others, guard.claimed)
        case ClientQuota():
            plan = _plan_quota(resource, seen, others, guard.now)
        case _:
            plan = _plan_user(resource, seen, claims, guard.now, people)
    return held_back(plan) if guard.paused or is_paused(resource) else plan


def _others(resource: Managed, claims: Mapping[object, Sequence[Managed]]) -> list[Managed]:
    """The other resources that claim the same, the oldest first."""
    return [other for other in claims.get(claim_of(resource), ()) if key_of(other) != key_of(resource)]


def _plan_user(
    user: KafkaUser, seen: SeenCluster, claims: Mapping[object, Sequence[Managed]], now: datetime, people: People
) -> KafkaPlan:
    there = people.seen(user, seen)
    rivals = [rival for rival in _others(user, claims) if isinstance(rival, KafkaUser)]
    if (limits := quota_of(user)) is not None:
        plan = _plan_quota(limits, seen, _others(limits, claims), now)
    else:
        plan, there = None, replace(there, quotas=_without_those_of_others(user, there.quotas, claims, seen, now))
    if user.metadata.deletion_timestamp is None:
        return users.reconcile(user, there, now, plan, _owner(user, rivals))
    heir = next((rival for rival in rivals if rival.metadata.deletion_timestamp is None), None)
    return users.retire(user, there, plan, heir)


def _without_those_of_others(
    user: KafkaUser,
    values: Mapping[str, float],
    claims: Mapping[object, Sequence[Managed]],
    seen: SeenCluster,
    now: datetime,
) -> Mapping[str, float]:
    """The limits of a user in Kafka that no ClientQuota wants."""
    claimants = [other for other in claims.get(entity_of_user(user), ()) if isinstance(other, ClientQuota)]
    staying = [other for other in claimants if other.metadata.deletion_timestamp is None]
    wanted = {key for other in staying for key in quotas.target_values(other, seen.brokers_to_be, now)}
    return {key: value for key, value in values.items() if key not in wanted}


def _plans(
    resources: Sequence[Managed], look: SeenCluster, now: datetime, guard: _Guard, people: People
) -> tuple[SeenCluster, dict[Key, KafkaPlan]]:
    """A plan for each resource, and the look with what more they depend on: records, and rates of brokers."""
    admin = people.admin
    seen = _count_records(resources, look, admin, guard)
    plans = plan_all(resources, seen, now, guard, people)
    pairs = [(topic, plans[key_of(topic)]) for topic in resources if isinstance(topic, Topic)]
    if not any(moves.needs_rates(topic, plan) for topic, plan in pairs):
        return seen, plans
    seen = replace(seen, rates=admin.rates(sorted(seen.brokers)))
    with_limits = moves.throttled(pairs, seen)
    return seen, plans | {key_of(topic): plan for (topic, _), plan in zip(pairs, with_limits, strict=True)}


def _open(managed: Mapping[Key, Managed], plans: Mapping[Key, KafkaPlan], guard: _Guard) -> dict[Key, KafkaPlan]:
    """The plans with something to do now; a move of replicas first has to stand in the status."""
    found = {}
    for key, plan in plans.items():
        resource, actions = managed[key], plan.actions
        if isinstance(resource, Topic) and not moves.may_begin(resource, plan):
            actions = tuple(action for action in actions if not isinstance(action, moves.STEPS))
        if actions and key not in guard.failures:
            found[key] = replace(plan, actions=actions)
    return found


def _unasked(plans: Mapping[Key, KafkaPlan], asked: Mapping[Key, Collection[ManagedAction]]) -> dict[Key, KafkaPlan]:
    """The plans without what was asked for already: the broker that was looked at has not heard of all of it yet."""
    left = {
        key: tuple(action for action in plan.actions if action not in asked.get(key, ())) for key, plan in plans.items()
    }
    return {key: replace(plan, actions=left[key]) for key, plan in plans.items() if left[key]}


def _plan_topic(topic: Topic, seen: SeenCluster, others: Sequence[Managed], claimed: Collection[str]) -> KafkaPlan:
    rivals = [rival for rival in others if isinstance(rival, Topic)]
    there = seen.topics.get(topic.topic_name)
    if topic.metadata.deletion_timestamp is not None:
        return Plan() if topic.topic_name in claimed else topics.retire(topic, there, rivals)
    return topics.reconcile(topic, there, seen, _owner(topic, rivals))


def _plan_quota(quota: ClientQuota, seen: SeenCluster, others: Sequence[Managed], now: datetime) -> KafkaPlan:
    rivals = [rival for rival in others if isinstance(rival, ClientQuota)]
    values, brokers = seen.quotas.get(entity_of(quota.spec.entity), {}), seen.brokers_to_be
    if quota.metadata.deletion_timestamp is not None:
        heir = next((rival for rival in rivals if rival.metadata.deletion_timestamp is None), None)
        wanted = {**quotas.target_values(heir, brokers, now), **budgets.parts(heir, seen)} if heir else {}
        return quotas.retire(quota, values, wanted)
    plan = quotas.reconcile(quota, values, brokers, now, _owner(quota, rivals), budgets.parts(quota, seen))
    return replace(plan, words=(*plan.words, *_contested(quota, rivals)))


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
    return [users.contested(rival.identity, entity) for rival in younger[:1]] if _owner(quota, rivals) is None else []


def claim_of(resource: Managed) -> object:
    """The topic name, entity or user, which only one resource can own."""
    match resource:
        case Topic():
            return resource.topic_name
        case ClientQuota():
            return entity_of(resource.spec.entity)
        case KafkaUser():
            return "user", resource.user_name


def claims_of(resources: Iterable[Managed]) -> dict[object, list[Managed]]:
    """The resources that claim each topic name, entity or user, the oldest first; limits of users as quotas."""
    claims: dict[object, list[Managed]] = {}
    for resource in sorted(resources, key=lambda resource: resource.seniority):
        same = claims.setdefault(claim_of(resource), [])
        same.append(resource)
        if isinstance(resource, KafkaUser) and same[0] is resource and (limits := quota_of(resource)) is not None:
            claims.setdefault(claim_of(limits), []).append(limits)
    return claims


def _owner(resource: Claimant, rivals: Sequence[Claimant]) -> Claimant | None:
    """The older resource that owns what `resource` claims, or None. A resource that is being deleted owns nothing."""
    staying = [rival for rival in rivals if rival.metadata.deletion_timestamp is None]
    return next((rival for rival in staying if rival.seniority < resource.seniority), None)


def _count_records(resources: Iterable[Managed], seen: SeenCluster, admin: Admin, guard: _Guard) -> SeenCluster:
    """`seen`, with the number of records of each topic whose plan depends on it."""
    counted: dict[str, SeenTopic] = dict(seen.topics)
    for resource in resources:
        there = counted.get(resource.topic_name) if isinstance(resource, Topic) else None
        if not isinstance(resource, Topic) or there is None or key_of(resource) in guard.failures:
            continue
        with guard.over(resource):
            if topics.needs_records(resource, there):
                counted[resource.topic_name] = replace(there, records=admin.records(there.name))
    return replace(seen, topics=counted)


def _groups(plans: Mapping[Key, KafkaPlan]) -> Iterator[list[Key]]:
    """The keys of the plans, grouped where each plan is one action that Kafka takes many of in a request."""
    for _, group in groupby(plans, key=lambda key: _batch_of(plans[key]) or key):
        keys = list(group)
        yield from (keys[begin : begin + BATCH_MAX] for begin in range(0, len(keys), BATCH_MAX))


def _batch_of(plan: KafkaPlan) -> type | None:
    kinds = {type(action) for action in plan.actions}
    return kinds.pop() if len(plan.actions) == 1 and kinds <= {CreateTopic, AlterQuota} else None


def _perform_together(
    keys: Sequence[Key],
    plans: Mapping[Key, KafkaPlan],
    managed: Mapping[Key, Managed],
    guard: _Guard,
    admin: Admin,
    done: list[tuple[Key, ManagedAction]],
) -> None:
    """Carry out plans in one request; those that were refused in it are tried one by one."""
    for key in _not_done_together(keys, plans, admin, done) if len(keys) > 1 else keys:
        with guard.over(managed[key]):
            for action in plans[key].actions:
                assert not isinstance(action, NO_ADMIN_ACTIONS), "Secrets are of users"
                admin.perform(action)
                done.append((key, action))


def _not_done_together(
    keys: Sequence[Key], plans: Mapping[Key, KafkaPlan], admin: Admin, done: list[tuple[Key, ManagedAction]]
) -> list[Key]:
    """Carry out one action of each plan in one request; the keys of the plans that were refused.

    A request that is refused as a whole, such as for its size, is refused for each of its parts.
    """
    actions = {key: action for key in keys if not isinstance(action := plans[key].actions[0], NO_ADMIN_ACTIONS)}
    try:
        errors = dict(zip(keys, admin.perform_many(list(actions.values())), strict=True))
    except Exception:  # noqa: BLE001 - each by itself says what is wrong, and with which
        return list(keys)
    done += [(key, action) for key, action in actions.items() if errors[key] is None]
    return [key for key in keys if errors[key] is not None]


def _remember(resource: Managed, plan: KafkaPlan, seen: SeenCluster, now: datetime, people: People) -> Managed:
    """The resource with the settings that the plan's actions make its own, for the next round."""
    last = correction(resource, plan, seen, now)
    if isinstance(resource, KafkaUser):
        found = users.remembered(resource, plan, people.seen(resource, seen), now)
        return resource.replaced({"status": resource.status.replaced({**found, "last_correction": last})})
    if isinstance(resource, Topic):
        owned = topics.managed_after(resource, plan)
        update: dict[str, object] = {"managed_config": owned, "last_correction": last}
        return resource.replaced({"status": resource.status.replaced(update)})
    target = {**quotas.target_values(resource, seen.brokers_to_be, now), **budgets.parts(resource, seen)}
    update = {"applied": target, "applied_time": now, "last_correction": last}
    return resource.replaced({"status": resource.status.replaced(update)})


def _outcome(
    resources: Mapping[Key, Managed],
    plans: Mapping[Key, KafkaPlan],
    guard: _Guard,
    seen: SeenCluster,
    done: list[tuple[Key, ManagedAction]],
    people: People,
) -> Outcome:
    outcome, near = Outcome(seen, steps=done), Neighbours(seen.quotas)
    for key, resource in resources.items():
        is_kept = guard.paused or is_paused(resource) or key in guard.failures
        if resource.metadata.deletion_timestamp is not None and not is_kept:
            outcome.released.append(key)
            continue
        words = guard.failures.get(key, plans[key].words)
        with guard.over(resource):
            plan = replace(plans[key], words=words)
            outcome.statuses[key] = (
                user_status(resource, seen, words, guard.now, people.location(resource))
                if isinstance(resource, KafkaUser)
                else _status(resource, seen, plan, guard.now, near)
            )
        if key not in outcome.statuses:
            words = guard.failures[key]
            outcome.statuses[key] = _with_words(resource, words, guard.now, seen)
    guard.forgive(resources)
    return outcome


def _with_words(
    resource: Topic | ClientQuota | KafkaUser, words: Sequence[Word], now: datetime, seen: SeenCluster
) -> Status:
    return with_words(resource, words, now, is_external=seen.is_external, knows_users=seen.knows_users)


def _status(
    resource: Topic | ClientQuota, seen: SeenCluster, plan: KafkaPlan, now: datetime, near: Neighbours
) -> Status:
    if isinstance(resource, Topic):
        there = seen.topics.get(resource.topic_name)
        move = moves.noted(resource, plan, seen, now)
        return topic_status(resource, there, plan.words, now, move, is_external=seen.is_external)
    return quota_status(resource, seen, plan.words, now, near)
