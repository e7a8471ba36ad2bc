"""`kavka plan`: what an apply would do, to local clusters and over a kubeconfig. It changes nothing.

The plan is made here, by the rules that the operator goes by. Over a kubeconfig the API server says first what it would
make of each resource, or why it refuses it; brokers are asked where they can be reached from here, and what only they
could tell is said to be unknown where they cannot.
"""

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kavka_cli.connection import bootstrap_and_security
from kavka_cli.dry_run import Foreseen, Supposed, foretold, supposed
from kavka_cli.field_changes import field_changes
from kavka_cli.kubernetes.api_server import KubernetesError
from kavka_cli.kubernetes.preview import foreseen
from kavka_cli.kubernetes.server_dry_run import rehearse
from kavka_cli.local_clusters import add_state_directory, is_running
from kavka_cli.output import CommandError, complain, say
from kavka_cli.plan_text import Planned, as_json, as_text, exit_code
from kavka_cli.resource_files import add_files, declared_by_cluster
from kavka_cli.resource_store import KubernetesResources, LocalResources, add_store, open_store, store_options
from kavka_cli.target import reached, resources_of
from kavka_operator.api import GROUP
from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.api.files import BadResourcesError, written
from kavka_operator.api.kinds import KINDS, AnyResource, Key, cluster_key, key_of
from kavka_operator.api.stored_resources import UnreadableError, part, resource_from
from kavka_operator.domain.access import Security
from kavka_operator.kafka.admin import AdminError
from kavka_operator.platform.local.layout import Layout
from kavka_operator.platform.local.store import Store
from kavka_operator.reconcile.impact import Sizes

Document = dict[str, Any]
#: A client of a local cluster and the sizes of its partitions; None where it does not run.
Reach = Callable[[Layout], AbstractContextManager[tuple[Any, Sizes]] | None]


HELP = (
    "Say what `apply` would do: fields, restarts with their reasons and order, what is at risk, what waits. It"
    " changes nothing. Exit code 0 where nothing would change, 2 where something would, 1 where it is refused."
)


def add_options(parser: ArgumentParser) -> None:
    """Add the options of `kavka plan`."""
    add_state_directory(parser)
    add_files(parser)
    add_store(parser)
    parser.add_argument("--output", "-o", choices=("text", "json"), default="text", help="How to print.")


def run(options: Namespace, reach: Reach | None = None) -> int:
    """Print the plan; the exit code: 0 where nothing would change, 2 where something would, 1 where it is refused.
    `reach` is another way to local clusters.
    """
    files, chosen = options.filename, store_options(options)
    try:
        if not files:
            raise CommandError("name a resource file: kavka plan -f FILE")
        store = open_store(chosen)
        if isinstance(store, KubernetesResources):
            found = _OnKubernetes(store, chosen.namespace or store.namespace).plan(files)
        else:
            assert isinstance(store, LocalResources), "resources are local or on Kubernetes"
            found = _plan_locally(files, store.state, reach or _reached)
    except (AdminError, BadResourcesError, CommandError) as error:
        return complain(error)
    say(as_json(found) if options.output == "json" else "\n".join(as_text(found)))
    return exit_code(found)


def _plan_locally(files: Sequence[Path], state: Path, reach: Reach) -> list[Planned]:
    """The plan for clusters of this machine. Raises AdminError, BadResourcesError and CommandError."""
    found = []
    for layout, declared in declared_by_cluster("plan", list(files), state).items():
        edits = Store(layout).preview(declared, datetime.now(UTC))
        changed = {edit.key: edit.after for edit in edits if edit.change != "unchanged"}
        told, unknown = _effects_locally(layout, changed, reach)
        found += [
            Planned(
                edit.key,
                edit.change,
                field_changes(edit.before, edit.after),
                told.get(edit.key, Foreseen()),
                unknown=[unknown] if unknown and edit.key in changed else [],
            )
            for edit in edits
        ]
    return found


def _effects_locally(layout: Layout, changed: Mapping[Key, Document], reach: Reach) -> tuple[dict[Key, Foreseen], str]:
    """Effects on a local cluster, and why they are not known where they are not. Raises AdminError, CommandError."""
    if not changed:
        return {}, ""
    way = reach(layout)
    if way is None:
        return {}, "the cluster does not run; what follows from this shows once it does (`kavka up`)"
    with way as (client, sizes):
        return foretold(supposed(layout, changed), client, sizes), ""


def _reached(layout: Layout) -> AbstractContextManager[tuple[Any, Sizes]] | None:
    """The way to a local cluster; None where it does not run. Raises CommandError."""
    return _client_and_sizes(*bootstrap_and_security(layout)) if is_running(layout) else None


@contextmanager
def _client_and_sizes(bootstrap: str, security: Security) -> Generator[tuple[Any, Sizes]]:
    """A client that asks, and the bytes of the largest replica of each partition. Raises AdminError."""
    from kavka_operator.kafka.offsets_and_lag import Onlooker

    client = Onlooker(bootstrap, security)
    try:
        sizes: dict[tuple[str, int], int] = {}
        for broker in sorted(client.members().brokers):
            for partition, size in client.log_dirs(broker).sizes.items():
                sizes[partition] = max(size, sizes.get(partition, 0))
        yield client, sizes
    finally:
        client.close()


@dataclass(frozen=True, slots=True)
class _Offered:
    """A resource that an API server would take: as it is, and as it would be."""

    planned: Planned
    before: AnyResource | None
    after: AnyResource


@dataclass(frozen=True, slots=True)
class _OnKubernetes:
    """A plan for the resources that an API server keeps. `namespace` is that of resources that name none."""

    store: KubernetesResources
    namespace: str

    def plan(self, files: Sequence[Path]) -> list[Planned]:
        """The outcome that each resource of the files would have. Raises BadResourcesError and CommandError."""
        found = [self._offered(document) for document in self._ours(files)]
        taken = [offered for offered in found if isinstance(offered, _Offered)]
        told: dict[Key, Planned] = {}
        for cluster in dict.fromkeys(cluster_key(offered.after) for offered in taken):
            told |= self._of_cluster(cluster, [offer for offer in taken if cluster_key(offer.after) == cluster])
        return [
            told[offered.planned.key] if isinstance(offered, _Offered) else offered
            for offered in sorted(found, key=_rank)
        ]

    def _ours(self, files: Sequence[Path]) -> list[Document]:
        """The documents of our kinds, each with its namespace. Raises BadResourcesError and CommandError."""
        found: dict[Key, Document] = {}
        for file, document in written(files):
            value, metadata = document.value, part(document.value, "metadata")
            kind, group = str(value.get("kind")), str(value.get("apiVersion")).partition("/")[0]
            if group != GROUP or kind not in KINDS:
                sys.stderr.write(f"left out: {kind} of {file}, which is not of Kavka\n")
                continue
            if not metadata.get("name"):
                raise CommandError(f"{file}:{document.line(())}: {kind}: metadata.name is missing")
            key = kind, str(metadata.get("namespace") or self.namespace), str(metadata["name"])
            if key in found:
                raise CommandError(f'{file}:{document.line(())}: {kind} "{key[2]}" stands twice; keep one')
            wanted = {name: field for name, field in value.items() if name != "status"}
            found[key] = {**wanted, "metadata": {**metadata, "namespace": key[1]}}
        return list(found.values())

    def _offered(self, document: Document) -> "_Offered | Planned":
        """The resource as the API server would store it, or the words in which it refuses it."""
        metadata = document["metadata"]
        key = document["kind"], metadata["namespace"], metadata["name"]
        try:
            found = rehearse(self.store.server, document)
        except KubernetesError as error:
            if not error.status:
                raise CommandError(str(error)) from error
            return Planned(key, "refused", refused=[str(error)])
        fields = field_changes(found.before, document if found.before is None else found.after)
        change = "created" if found.before is None else "configured" if fields else "unchanged"
        try:
            before = None if found.before is None else resource_from(found.before)
            after = resource_from({**found.after, "status": part(found.before or {}, "status")})
        except UnreadableError as error:
            words = f"this version of the command cannot understand it: {error}"
            return Planned(key, change, fields, warnings=found.warnings, unknown=[words])
        return _Offered(Planned(key, change, fields, warnings=found.warnings), before, after)

    def _of_cluster(self, name: Key, offered: Sequence[_Offered]) -> dict[Key, Planned]:
        """Outcomes of the changes of one cluster and its resources, by key. Raises CommandError."""
        changed = {offer.planned.key: offer.after for offer in offered if offer.planned.change != "unchanged"}
        planned = {offer.planned.key: offer.planned for offer in offered}
        if not changed:
            return planned
        before = next((offer.before for offer in offered if offer.planned.key == name), None) or self._stored(name)
        assert before is None or isinstance(before, KafkaCluster), "it has the key of one"
        after = changed.get(name, before)
        if not isinstance(after, KafkaCluster):
            words = (
                f'there is no KafkaCluster "{name[2]}" in namespace "{name[1]}", so that nothing follows from it yet'
            )
            return {key: replace(found, unknown=[words]) for key, found in planned.items()}
        there, doubt = self._supposed(after, before, changed)
        told, silence = self._effects(there, before)
        unknown = [words for words in (doubt, silence) if words]
        return {
            key: replace(found, foreseen=told.get(key, Foreseen()), unknown=unknown) if key in changed else found
            for key, found in planned.items()
        }

    def _stored(self, name: Key) -> AnyResource | None:
        """The KafkaCluster of this key; None where there is none that can be understood. Raises CommandError."""
        found = self.store.documents(name[1]).get(name)
        try:
            return None if found is None else resource_from(found)
        except UnreadableError:
            return None

    def _supposed(
        self, after: KafkaCluster, before: KafkaCluster | None, changed: Mapping[Key, AnyResource]
    ) -> tuple[Supposed, str]:
        """The cluster as it would be, and why that is not known for sure."""
        resources = {key_of(resource): resource for resource in resources_of(self.store, after)} | dict(changed)
        if after.spec.external is not None or key_of(after) not in changed:
            return Supposed(after, resources, changed, before=before), ""
        view, doubt = foreseen(self.store.server, after, before)
        return Supposed(after, resources, changed, view, before), doubt

    def _effects(self, there: Supposed, before: KafkaCluster | None) -> tuple[dict[Key, Foreseen], str]:
        """Effects by resource, and why not all are known where brokers cannot be asked."""
        assert there.cluster is not None, "nothing is supposed without one"
        if before is None:
            return foretold(there, None), "the cluster is new: what becomes of topics and quotas shows once it runs"
        try:
            with _client_and_sizes(
                *reached(self.store, there.cluster if before.spec.external is not None else before)
            ) as asked:
                return foretold(there, *asked), ""
        except (AdminError, CommandError) as error:
            words = (
                "what only brokers tell: partitions at risk, replicas to move, and what is done to topics and quotas"
            )
            advice = "run this where their addresses can be reached"
            return foretold(there, None), f"{words} ({error}; {advice})"


def _rank(found: "_Offered | Planned") -> tuple[int, str, str]:
    """The sort key of a resource: clusters first, then by namespace and name."""
    kind, namespace, name = found.planned.key if isinstance(found, _Offered) else found.key
    return list(KINDS).index(kind), namespace, name
