"""`--dry-run`: what a change would do, without doing any of it.

`client` says what would be created, configured or deleted, from the files alone. `server` asks the running cluster too:
the plan that `kavka up` would make is made here, from the same look and by the same rules, and Kafka itself is asked
whether it would accept each change that it can check without carrying it out.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.api.kinds import AnyResource, Key, key_of
from kavka_operator.api.quota import ClientQuota
from kavka_operator.api.stored import resource_from
from kavka_operator.api.topic import Topic
from kavka_operator.cli.asking import asking
from kavka_operator.cli.words import CommandError, complain, say
from kavka_operator.domain.plan import KafkaAction, Plan
from kavka_operator.domain.seen import SeenCluster
from kavka_operator.kafka.admin import Admin, AdminError
from kavka_operator.loop.converge import plan_once
from kavka_operator.platform.local.foreseeing import node_actions, surplus_nodes
from kavka_operator.platform.local.layout import Layout
from kavka_operator.platform.local.store import Store
from kavka_operator.platform.nodes import brokers_wanted
from kavka_operator.reconcile.cluster import brokers_config, shrink
from kavka_operator.reconcile.grants import refusals


class DryRun(StrEnum):
    """The values of `--dry-run`, as kubectl has them."""

    NONE = "none"
    CLIENT = "client"
    SERVER = "server"


SUFFIXES = {DryRun.NONE: "", DryRun.CLIENT: " (dry run)", DryRun.SERVER: " (server dry run)"}


@dataclass(slots=True)
class Foreseen:
    """What a change of one resource would do, and what would keep it from being done."""

    actions: list[str] = field(default_factory=list)
    obstacles: list[str] = field(default_factory=list)


def dry(dry_run: DryRun) -> str:
    """The words that kubectl writes behind a line of a dry run."""
    return SUFFIXES[dry_run]


def tell(line: str, key: Key, foreseen: Foreseen | None) -> int:
    """Print a line and what is foreseen below it; the exit code."""
    say(line)
    if foreseen is None:
        return 0
    for action in foreseen.actions:
        say(f"  {action}")
    return max([0, *(complain(CommandError(f'{key[0]} "{key[2]}": {words}')) for words in foreseen.obstacles)])


def foresee(layout: Layout, changed: Mapping[Key, dict[str, Any]], deleted: Collection[Key]) -> dict[Key, Foreseen]:
    """The actions of the running cluster if resources were `changed` to these documents, and others `deleted`.

    Raises CommandError where the cluster does not run, and AdminError where it does not answer.
    """
    resources, claimed = _resources(layout, changed, deleted)
    cluster = next((resource for resource in resources.values() if isinstance(resource, KafkaCluster)), None)
    managed = [resource for resource in resources.values() if isinstance(resource, Topic | ClientQuota)]
    expected = brokers_wanted(cluster) if cluster is not None else 0
    with asking(layout, "; to check the files alone, use --dry-run=client") as admin:
        refused = refusals(cluster, managed) if cluster is not None else {}
        now = datetime.now(UTC)
        seen, plans = plan_once(managed, admin, now, brokers_expected=expected, claimed=claimed, refused=refused)
        foreseen = {key: _of_plan(plans[key], admin) for key in (*changed, *deleted) if key in plans}
        if cluster is not None and key_of(cluster) in changed:
            foreseen[key_of(cluster)] = _of_cluster(layout, cluster, seen, admin)
    return foreseen


def _resources(
    layout: Layout, changed: Mapping[Key, dict[str, Any]], deleted: Collection[Key]
) -> tuple[dict[Key, AnyResource], list[str]]:
    """Every resource as it would be then, and the topics of the resources that cannot be read."""
    store = Store(layout)
    readable, unreadable = store.read()
    resources = {key_of(resource): resource for resource in readable}
    documents = store.documents()
    for key, document in changed.items():
        resources[key] = resource_from({**document, "status": documents.get(key, {}).get("status", {})})
    for key in deleted:
        metadata = resources[key].metadata.replaced({"deletion_timestamp": datetime.now(UTC)})
        resources[key] = resources[key].replaced({"metadata": metadata})
    return resources, [unread.topic_name for unread in unreadable if unread.topic_name and unread.key not in changed]


def _of_plan(plan: Plan[KafkaAction], admin: Admin) -> Foreseen:
    steps = [str(action) for action in plan.actions]
    waits = [word.message for word in plan.words if word.type == "Reconciling" and not steps]
    stalled = [f"{word.reason}: {word.message}" for word in plan.words if word.type == "Stalled"]
    return Foreseen([*steps, *waits], [*stalled, *_refused(plan.actions, admin)])


def _of_cluster(layout: Layout, cluster: KafkaCluster, seen: SeenCluster, admin: Admin) -> Foreseen:
    foreseen = _of_plan(brokers_config(cluster, seen), admin)
    foreseen.actions += map(str, node_actions(layout, cluster))
    surplus = surplus_nodes(layout, cluster)
    gone = {node.id for node in surplus}
    racks = {number: broker.rack for number, broker in seen.brokers.items() if number not in gone}
    left = shrink(surplus, admin.survey(), racks) if surplus else None
    if left is not None:
        foreseen.actions += map(str, left.actions)
        foreseen.obstacles += [f"{word.reason}: {word.message}" for word in left.words if word.type == "Stalled"]
    return foreseen


def _refused(actions: Sequence[KafkaAction], admin: Admin) -> Iterator[str]:
    for action in actions:
        try:
            admin.check(action)
        except AdminError as error:
            yield f"Rejected: {error}"
