"""Carries out plans for topics and quotas: many in one request where Kafka takes that, one by one what it refuses."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from kavka_operator.api.kinds import Key, Managed
from kavka_operator.domain.plan import AlterQuota, CreateTopic, KafkaPlan
from kavka_operator.loop.kinds.kind import Pass
from kavka_operator.loop.users import NO_ADMIN_ACTIONS

BATCH_MAX = 200


def perform_in_batches(plans: Mapping[Key, KafkaPlan], managed: Mapping[Key, Managed], run: Pass) -> None:
    """Carry out plans in their order."""
    for group in _groups(plans):
        _perform_together(group, plans, managed, run)


def _groups(plans: Mapping[Key, KafkaPlan]) -> Iterator[list[Key]]:
    """The keys of the plans, grouped where each plan is one action that Kafka takes many of in a request."""
    for _, group in groupby(plans, key=lambda key: _batch_of(plans[key]) or key):
        keys = list(group)
        yield from (keys[begin : begin + BATCH_MAX] for begin in range(0, len(keys), BATCH_MAX))


def _batch_of(plan: KafkaPlan) -> type | None:
    kinds = {type(action) for action in plan.actions}
    return kinds.pop() if len(plan.actions) == 1 and kinds <= {CreateTopic, AlterQuota} else None


def _perform_together(
    keys: Sequence[Key], plans: Mapping[Key, KafkaPlan], managed: Mapping[Key, Managed], run: Pass
) -> None:
    """Carry out plans in one request; those that were refused in it are tried one by one."""
    for key in _not_done_together(keys, plans, run) if len(keys) > 1 else keys:
        with run.failures.over(managed[key]):
            for action in plans[key].actions:
                assert not isinstance(action, NO_ADMIN_ACTIONS), "Secrets are of users"
                run.admin.perform(action)
                run.done.append((key, action))


def _not_done_together(keys: Sequence[Key], plans: Mapping[Key, KafkaPlan], run: Pass) -> list[Key]:
    """Carry out one action of each plan in one request; the keys of the plans that were refused.

    A request that is refused as a whole, such as for its size, is refused for each of its parts.
    """
    actions = {key: action for key in keys if not isinstance(action := plans[key].actions[0], NO_ADMIN_ACTIONS)}
    try:
        errors = dict(zip(keys, run.admin.perform_many(list(actions.values())), strict=True))
    except Exception:  # noqa: BLE001 - each by itself says what is wrong, and with which
        return list(keys)
    run.done += [(key, action) for key, action in actions.items() if errors[key] is None]
    return [key for key in keys if errors[key] is not None]
