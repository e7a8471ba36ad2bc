"""`--dry-run`: what a change would do, without doing any of it.

`client` says what would be created, configured or deleted, from the files alone. `server` asks the running cluster too:
the plan that `kavka up` would make is made here, from the same look and by the same rules, and Kafka itself is asked
whether it would accept each change that it can check without carrying it out.
"""

from argparse import ArgumentParser
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from kavka_cli.connection import connected
from kavka_cli.output import CommandError, complain, say
from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.api.kinds import AnyResource, Key, Managed, key_of
from kavka_operator.api.stored_resources import resource_from
from kavka_operator.domain.cluster_view import View
from kavka_operator.domain.name_lists import counted, named
from kavka_operator.domain.observed import SeenCluster
from kavka_operator.domain.plan import ManagedAction, MoveReplicas, Plan, RestartNode
from kavka_operator.domain.units import size
from kavka_operator.kafka.admin import Admin, AdminError
from kavka_operator.loop.converge import plan_once
from kavka_operator.loop.observation import observe
from kavka_operator.loop.users import NO_ADMIN_ACTIONS
from kavka_operator.platform.local.layout import Layout
from kavka_operator.platform.local.preview import foreseen
from kavka_operator.platform.local.store import Store
from kavka_operator.platform.nodes import brokers_wanted
from kavka_operator.reconcile.cluster import brokers_config
from kavka_operator.reconcile.impact import Drained, Forecast, Sizes, as_told, bytes_to_copy, forecast


class DryRun(StrEnum):
    """The values of `--dry-run`, as kubectl has them."""

    NONE = "none"
    CLIENT = "client"
    SERVER = "server"


SUFFIXES = {DryRun.NONE: "", DryRun.CLIENT: " (dry run)", DryRun.SERVER: " (server dry run)"}


@dataclass(slots=True)
class Foreseen:
    """The effects of a change of one resource, what would keep it from being done, and what has to wait, as for the end
    of a pause; `nodes` of a KafkaCluster.
    """

    actions: list[str] = field(default_factory=list)
    obstacles: list[str] = field(default_factory=list)
    waits: list[str] = field(default_factory=list)
    nodes: Forecast = field(default_factory=Forecast)


@dataclass(frozen=True, slots=True)
class Supposed:
    """A cluster and its resources as they would be. `changed` are those to tell of, `view` the nodes there would be.

    `claimed` are topics of resources that cannot be read; `before` is the KafkaCluster as it is.
    """

    cluster: KafkaCluster | None
    resources: Mapping[Key, AnyResource]
    changed: Collection[Key]
    view: View | None = None
    before: KafkaCluster | None = None
    claimed: Sequence[str] = ()


def add_dry_run(parser: ArgumentParser) -> None:
    """Add `--dry-run`."""
    parser.add_argument(
        "--dry-run",
        default="none",
        choices=("none", "client", "server"),
        help="Change nothing and say what would be: from the files alone (client, as without a word), or with what the"
        " running cluster would do, and whether Kafka would accept it (server).",
    )


def dry(dry_run: DryRun) -> str:
    """The words that kubectl writes behind a line of a dry run."""
    return SUFFIXES[dry_run]


def tell(line: str, key: Key, foreseen: Foreseen | None) -> int:
    """Print a line and what is foreseen below it; the exit code."""
    say(line)
    if foreseen is None:
        return 0
    for action in (*foreseen.actions, *foreseen.waits, *words_of(foreseen.nodes)):
        say(f"  {action}")
    obstacles = [*foreseen.obstacles, *foreseen.nodes.refused]
    return max([0, *(complain(CommandError(f'{key[0]} "{key[2]}": {words}')) for words in obstacles)])


def words_of(nodes: Forecast, *, restarts: bool = True) -> Iterator[str]:
    """Actions on nodes, a line each; without their `restarts`, where those are told in another way."""
    yield from map(str, nodes.grows)
    yield from map(str, nodes.resizes)
    for restart in nodes.restarts if restarts else ():
        yield str(RestartNode(restart.node, restart.reason))
    yield from map(str, nodes.starts)
    if nodes.voting:
        yield f"give {named(nodes.voting)} a vote in the quorum of controllers"
    if nodes.voteless:
        yield f"take {named(nodes.voteless)} out of the quorum of controllers"
    yield from map(_emptied, nodes.drains)


def _emptied(node: Drained) -> str:
    if node.replicas is None:
        return f"move what node {node.node} holds to other brokers, then stop it"
    if not node.replicas:
        return f"stop node {node.node}, which holds nothing"
    held = "" if node.size is None else f" ({size(node.size)})"
    return f"move {counted(node.replicas, 'replica')}{held} from node {node.node} to other brokers, then stop it"


def foresee(layout: Layout, changed: Mapping[Key, dict[str, Any]], deleted: Collection[Key]) -> dict[Key, Foreseen]:
    """The actions of the running cluster if resources were `changed` to these documents, and others `deleted`.

    Raises CommandError where the cluster does not run, and AdminError where it does not answer.
    """
    with connected(layout, "; to check the files alone, use --dry-run=client") as admin:
        return foretold(supposed(layout, changed, deleted), admin)


def supposed(layout: Layout, changed: Mapping[Key, dict[str, Any]], deleted: Collection[Key] = ()) -> Supposed:
    """A local cluster with resources `changed` to these documents, and others `deleted`."""
    resources, claimed = _resources(layout, changed, deleted)
    cluster = next((resource for resource in resources.values() if isinstance(resource, KafkaCluster)), None)
    view = foreseen(cluster, layout) if cluster is not None and cluster.spec.external is None else None
    return Supposed(cluster, resources, (*changed, *deleted), view, claimed=claimed)


def foretold(there: Supposed, admin: Admin | None, sizes: Sizes | None = None) -> dict[Key, Foreseen]:
    """Effects by resource, of those that are changed. `sizes` are the bytes of replicas, where they are known.

    Without an `admin`, as no broker can be asked, what the status tells of the nodes has to do, and nothing is said of
    topics and quotas. Raises AdminError.
    """
    cluster, now = there.cluster, datetime.now(UTC)
    found: dict[Key, Foreseen] = {}
    seen = None
    if admin is not None:
        managed = [resource for resource in there.resources.values() if isinstance(resource, Managed)]
        expected = brokers_wanted(cluster) if cluster is not None else 0
        observation = observe(cluster, managed, now, brokers_expected=expected, claimed=there.claimed)
        seen, plans = plan_once(observation, admin)
        found = {key: _of_plan(plans[key], admin, seen, sizes) for key in there.changed if key in plans}
    if cluster is not None and key_of(cluster) in there.changed and there.view is not None:
        found[key_of(cluster)] = _of_cluster(there, cluster, there.view, seen, admin, sizes, now)
    return found


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


def _of_plan(
    plan: Plan[ManagedAction], admin: Admin | None, seen: SeenCluster | None = None, sizes: Sizes | None = None
) -> Foreseen:
    steps = [f"{action}{_copied(action, seen, sizes)}" for action in plan.actions]
    waits = [word.message for word in plan.words if word.type == "Reconciling" and not steps]
    stalled = [f"{word.reason}: {word.message}" for word in plan.words if word.type == "Stalled"]
    return Foreseen(steps, [*stalled, *(_refused(plan.actions, admin) if admin is not None else ())], waits)


def _copied(action: ManagedAction, seen: SeenCluster | None, sizes: Sizes | None) -> str:
    """The words for what a reassignment copies; empty for any other action."""
    if not isinstance(action, MoveReplicas) or seen is None or sizes is None or action.name not in seen.topics:
        return ""
    return f" ({size(bytes_to_copy(action, seen.topics[action.name], sizes))} to copy)"


def _of_cluster(
    there: Supposed,
    cluster: KafkaCluster,
    view: View,
    seen: SeenCluster | None,
    admin: Admin | None,
    sizes: Sizes | None,
    now: datetime,
) -> Foreseen:
    told, survey = as_told(there.before or cluster)
    live = seen or told
    found = _of_plan(brokers_config(cluster, live), admin)
    if view.refusal is not None:
        found.obstacles.append(f"Unsupported: {view.refusal}")
        return found
    survey = admin.survey() if admin is not None else survey
    found.nodes = forecast(cluster, view.wanted, view.seen, live, survey, now, view.volumes, sizes)
    return found


def _refused(actions: Sequence[ManagedAction], admin: Admin) -> Iterator[str]:
    for action in actions:
        if isinstance(action, NO_ADMIN_ACTIONS):
            continue
        try:
            admin.check(action)
        except AdminError as error:
            yield f"Rejected: {error}"
