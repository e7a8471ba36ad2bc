"""`kavka apply`, `get`, `describe` and `delete`: the resources of local clusters."""

import json
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from kavka_operator.api import GROUP
from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.api.files import BadResourcesError, Declared, load
from kavka_operator.api.kinds import KINDS, AnyResource, find_kind
from kavka_operator.api.topic import Topic
from kavka_operator.cli.selecting import parse_selector
from kavka_operator.cli.standing import not_running
from kavka_operator.cli.watching import changes
from kavka_operator.cli.words import CommandError, complain, is_running, say, state_directory
from kavka_operator.platform.local import members
from kavka_operator.platform.local.layout import Layout, clusters
from kavka_operator.platform.local.limits import ignored, lost_volumes, unsupported
from kavka_operator.platform.local.store import Store, Unreadable
from kavka_operator.settle import Key, key_of
from kavka_operator.table import aligned, node_table, table

SETTLE_SECONDS_MAX = 30.0
POLL_SECONDS = 0.05
READ_SECONDS_MAX = 1.0


def known_resources(state: Path) -> dict[Key, AnyResource]:
    """Every resource of every local cluster."""
    return {key_of(each): each for layout in clusters(state) for each in Store(layout).all()}


def overview(layout: Layout) -> str:
    """All resources of a cluster, a table a kind."""
    documents = list(documents_of(layout).values())
    return "\n\n".join(_tables(documents, wide=False))


def nodes_overview(layout: Layout) -> str:
    """The nodes of a cluster, a line each."""
    documents = documents_of(layout).values()
    return "\n".join(node_table(each) for each in documents if each["kind"] == KafkaCluster.kind_name)


def documents_of(layout: Layout) -> dict[Key, dict[str, Any]]:
    """Every resource of a cluster as it is to be shown: what was seen of one that does not run is no longer so."""
    documents = Store(layout).documents()
    if is_running(layout):
        return documents
    now = datetime.now(UTC)
    return {key: not_running(document, layout.cluster, now) for key, document in documents.items()}


def apply(files: list[Path], chosen_state: Path | None) -> int:
    """Create or change resources; the exit code."""
    try:
        if not files:
            raise CommandError("name a resource file: kavka apply -f FILE")
        state = state_directory(chosen_state)
        declared = load(files, known_resources(state))
        _refuse_unsupported(declared, state)
        changed = [_apply_to(layout, group) for layout, group in _by_cluster(declared, state).items()]
    except (BadResourcesError, CommandError) as error:
        return complain(error)
    return max(_follow(layout, keys) for layout, keys in changed)


def get(
    words: list[str],
    output: str,
    chosen_state: Path | None,
    namespace: str | None,
    labels: str = "",
    *,
    watch: bool = False,
) -> int:
    """Print resources of a namespace, or of all where it is None; the exit code."""

    def look() -> list[dict[str, Any]]:
        documents = _wanted_documents(kinds, names, state_directory(chosen_state), namespace)
        return [each for each in documents if selector.takes(each["metadata"].get("labels", {}))]

    try:
        (kinds, names), selector = chosen(words), parse_selector(labels)
        documents = look()
        if not documents:
            say("no resources" if namespace is None else f'no resources in namespace "{namespace}"')
        for number, changed in enumerate(changes(look) if watch else [documents]):
            if changed:
                is_single = len(names) == 1 and len(changed) == 1
                text = _printed(changed, output, single=is_single, namespaces=namespace is None)
                say(f"\n{text}" if number else text)
    except KeyboardInterrupt:
        return 0
    except CommandError as error:
        return complain(error)
    return 0


def describe(kind: str, name: str, chosen_state: Path | None, namespace: str) -> int:
    """Print one resource for a person; the exit code."""
    try:
        (document,) = _wanted_documents(_kinds(kind), [name], state_directory(chosen_state), namespace)
    except CommandError as error:
        return complain(error)
    conditions, nodes = document["status"].pop("conditions", []), node_table(document)
    document["status"].pop("brokers", None)
    say(_yaml({"kind": document["kind"], **document["metadata"]}))
    say("spec:\n" + _indented(_yaml(document.get("spec", {}))))
    say("status:\n" + _indented(_yaml(document["status"]) if document["status"] else "{}"))
    if nodes:
        say("nodes:\n" + _indented(nodes))
    rows = [
        [each["type"], each["status"], each["reason"], each["lastTransitionTime"], each["message"]]
        for each in conditions
    ]
    say("conditions:\n" + _indented(aligned([["TYPE", "STATUS", "REASON", "SINCE", "MESSAGE"], *rows])))
    return 0


def delete(kind: str | None, name: str | None, files: list[Path], chosen_state: Path | None, namespace: str) -> int:
    """Delete resources; the exit code."""
    state = state_directory(chosen_state)
    try:
        known = known_resources(state)
        if not files and kind is not None and (unreadable := _unreadable(state, kind, name, namespace)):
            _delete_unreadable(*unreadable)
            return 0
        doomed = _named(kind, name, known, namespace) if not files else _in_files(files, known)
        for each in doomed:
            _delete(each, Layout.of(state, each.metadata.namespace, _cluster_of(each)), known.values())
    except (BadResourcesError, CommandError) as error:
        return complain(error)
    return 0


def _refuse_unsupported(declared: Iterable[Declared], state: Path) -> None:
    for each in declared:
        if isinstance(each.resource, KafkaCluster):
            layout = Layout.of(state, each.resource.metadata.namespace, each.resource.name)
            known = members.read(layout)
            problem = unsupported(each.resource, layout, known) or lost_volumes(each.resource, layout, known)
            if problem:
                raise CommandError(problem)
            for note in ignored(each.resource):
                say(f"note: {note}")


def _by_cluster(declared: Iterable[Declared], state: Path) -> dict[Layout, list[Declared]]:
    groups: dict[Layout, list[Declared]] = {}
    for each in declared:
        layout = Layout.of(state, each.resource.metadata.namespace, _cluster_of(each.resource))
        groups.setdefault(layout, []).append(each)
    return groups


def _cluster_of(resource: AnyResource) -> str:
    return resource.name if isinstance(resource, KafkaCluster) else resource.spec.cluster_name


def _apply_to(layout: Layout, declared: list[Declared]) -> tuple[Layout, list[Key]]:
    layout.make()
    changed = []
    for resource, change in Store(layout).apply(declared, datetime.now(UTC)):
        say(f"{_short(resource)} {change}")
        if change != "unchanged":
            changed.append(key_of(resource))
    return layout, changed


def _follow(layout: Layout, keys: list[Key]) -> int:
    """Wait until a running cluster has done what was asked, and say where it could not; the exit code.

    A roll takes the time that it takes, and so do many resources: as long as it gets on, so does the waiting.
    """
    if not keys:
        return 0
    if not is_running(layout):
        say(f'KafkaCluster "{layout.cluster}" is not running; `kavka up` will make it so')
        return 0
    deadline, said, fewest = time.monotonic() + SETTLE_SECONDS_MAX, "", len(keys) + 1
    watch = _Watch(Store(layout), frozenset(keys))
    while (waiting := watch.unsettled()) and (began := time.monotonic()) < deadline:
        if all(each.is_stalled or each.waits_for_somebody for each in waiting):
            break
        if len(waiting) < fewest:
            deadline, fewest = time.monotonic() + SETTLE_SECONDS_MAX, len(waiting)
        if (rolling := next((each.message for each in waiting if each.reason == "Rolling"), said)) != said:
            deadline, said = time.monotonic() + SETTLE_SECONDS_MAX, rolling
            say(f"  {said}")
        time.sleep(max(POLL_SECONDS, 4 * (time.monotonic() - began)))  # who does the work needs the time
    return max([0, *map(_tell, waiting)])


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A resource that is not ready in its newest generation, and what it says."""

    resource: AnyResource
    reason: str
    message: str
    is_stalled: bool = False

    @property
    def waits_for_somebody(self) -> bool:
        """For a person or a time: it is as was asked, only later."""
        return self.reason in {"RolloutHeld", "RolloutWaits"}


@dataclass(slots=True)
class _Watch:
    """The resources that are not settled yet. Files are read when one has changed, and once a second in any case."""

    store: Store
    wanted: frozenset[Key]
    _waiting: list[_Waiting] = field(default_factory=list)
    _sight: tuple[int, ...] | None = None
    _read_at: float = 0.0

    def unsettled(self) -> list[_Waiting]:
        """Those of now, or of a second ago at most."""
        sight, now = self.store.sight(), time.monotonic()
        if sight != self._sight or now >= self._read_at + READ_SECONDS_MAX:
            self._waiting = list(_unsettled(self.store, self.wanted))
            self._sight, self._read_at = sight, now
        return self._waiting


def _tell(waiting: _Waiting) -> int:
    words = f"{waiting.resource.identity}: {waiting.reason}: {waiting.message}"
    if waiting.waits_for_somebody or waiting.reason == "Rolling":
        say(f"{words}\nit goes on by itself; see `kavka get kc -o wide`" if waiting.reason == "Rolling" else words)
        return 0
    return complain(CommandError(words))


def _unsettled(store: Store, keys: frozenset[Key]) -> Iterator[_Waiting]:
    for each in store.all():
        if key_of(each) not in keys:
            continue
        current = each.status.observed_generation == each.metadata.generation
        ready, stalled = each.status.condition("Ready"), each.status.condition("Stalled")
        if not current or ready is None:
            yield _Waiting(each, "NotSeen", "not looked at yet")
        elif ready.status != "True":
            yield _Waiting(each, ready.reason, ready.message, stalled is not None)


def chosen(words: list[str]) -> tuple[list[str], list[str]]:
    """Kinds and names out of `kt`, `kc,kt`, `kt a b` and `kt/a`. Raises CommandError."""
    first, *names = words or ["all"]
    if "/" in first:
        if any(word.count("/") != 1 or word.split("/")[0] != first.split("/")[0] for word in words):
            raise CommandError("write KIND/NAME for each resource, all of one kind, or KIND NAME NAME")
        first, names = first.split("/")[0], [word.split("/")[1] for word in words]
    wanted = {kind for text in first.split(",") for kind in _kinds(text)}
    return [kind for kind in KINDS if kind in wanted], names


def _wanted_documents(kinds: list[str], names: list[str], state: Path, namespace: str | None) -> list[dict[str, Any]]:
    documents = [
        document
        for layout in clusters(state)
        for key, document in documents_of(layout).items()
        if key[0] in kinds and namespace in {None, key[1]} and (not names or key[2] in names)
    ]
    found = {each["metadata"]["name"] for each in documents}
    if missing := [name for name in names if name not in found]:
        where = "any namespace" if namespace is None else f'namespace "{namespace}"'
        raise CommandError(f'there is no {kinds[0]} "{missing[0]}" in {where}')
    return sorted(documents, key=lambda each: (kinds.index(each["kind"]), *_place(each["metadata"])))


def _place(metadata: dict[str, Any]) -> tuple[str, str]:
    return metadata["namespace"], metadata["name"]


def _kinds(text: str | None) -> list[str]:
    if text in {None, "all", "kavka"}:
        return list(KINDS)
    kind = find_kind(str(text))
    if kind is None:
        raise CommandError(f'there is no kind "{text}"; write kafkacluster (kc), topic (kt), clientquota (kq) or all')
    return [kind.kind_name]


def _printed(documents: list[dict[str, Any]], output: str, *, single: bool, namespaces: bool) -> str:
    whole: dict[str, Any] = documents[0] if single else {"apiVersion": "v1", "kind": "List", "items": documents}
    match output:
        case "yaml":
            return _yaml(whole)
        case "json":
            return json.dumps(whole, indent=2)
        case "name":
            return "\n".join(f"{each['kind'].lower()}.{GROUP}/{each['metadata']['name']}" for each in documents)
        case _:
            return "\n\n".join(_tables(documents, wide=output == "wide", namespaces=namespaces))


def _tables(documents: list[dict[str, Any]], *, wide: bool, namespaces: bool = False) -> Iterator[str]:
    now = datetime.now(UTC)
    for name, kind in KINDS.items():
        if of_kind := [each for each in documents if each["kind"] == name]:
            yield table(kind, of_kind, now, wide=wide, namespaces=namespaces)
        if kind is KafkaCluster:
            yield from (nodes for each in of_kind if (nodes := node_table(each)))


def _named(kind: str | None, name: str | None, known: dict[Key, AnyResource], namespace: str) -> list[AnyResource]:
    if kind is None or name is None:
        raise CommandError("name what to delete: kavka delete KIND NAME, or kavka delete -f FILE")
    (kind_name,) = _kinds(kind) if kind not in {"all", "kavka"} else [kind]
    found = known.get((kind_name, namespace, name))
    if found is None:
        raise CommandError(f'there is no {kind_name} "{name}" in namespace "{namespace}"')
    return [found]


def _in_files(files: list[Path], known: dict[Key, AnyResource]) -> list[AnyResource]:
    """What the files declare and what exists; clusters last, as they are what the others need."""
    keys = [each.key for each in load(files, known, is_change=False)]
    return [known[key] for key in reversed(keys) if key in known]


def _unreadable(state: Path, kind: str, name: str | None, namespace: str) -> tuple[Layout, Unreadable] | None:
    """The resource of this name that is stored and cannot be understood."""
    for layout in clusters(state):
        for each in Store(layout).read()[1]:
            if each.key[0] in _kinds(kind) and each.key[1:] == (namespace, name):
                return layout, each
    return None


def _delete_unreadable(layout: Layout, one: Unreadable) -> None:
    kind, _, name = one.key
    if kind == KafkaCluster.kind_name:
        raise CommandError(f'{kind} "{name}" has its records in {layout.root}; apply it again to mend it')
    Store(layout).mark_deleted(one.key, datetime.now(UTC))
    if is_running(layout):
        _wait_until_gone(layout, one.key)
    say(f"{kind.lower()}.{GROUP}/{name} marked; it could not be understood, and what it has set in Kafka stays")


def _delete(resource: AnyResource, layout: Layout, known: Iterable[AnyResource]) -> None:
    if isinstance(resource, KafkaCluster):
        raise CommandError(
            f"{resource.identity} has its records in {layout.root}; stop it with `kavka down` and remove that directory"
        )
    Store(layout).mark_deleted(key_of(resource), datetime.now(UTC))
    if not is_running(layout):
        say(f"{_short(resource)} marked; it goes when the cluster runs")
        return
    _wait_until_gone(layout, key_of(resource))
    say(f"{_short(resource)} deleted{_what_stays(resource, known)}")


def _wait_until_gone(layout: Layout, key: Key) -> None:
    deadline = time.monotonic() + SETTLE_SECONDS_MAX
    while Store(layout).has(key):
        if time.monotonic() > deadline:
            words = f"is still there after {SETTLE_SECONDS_MAX:.0f} s; see `kavka describe`"
            raise CommandError(f'{key[0]} "{key[2]}" {words}')
        time.sleep(POLL_SECONDS)


def _what_stays(resource: AnyResource, known: Iterable[AnyResource]) -> str:
    if not isinstance(resource, Topic):
        return ""
    if heir := next((each for each in known if _inherits(each, resource)), None):
        return f'; topic "{resource.topic_name}" itself stays: {heir.identity} declares it too'
    if resource.spec.deletion_policy == "Delete":
        return ""
    kept = "stays" if resource.spec.deletion_policy == "Retain" else "stays if it holds records"
    return f'; topic "{resource.topic_name}" itself {kept} (deletionPolicy: {resource.spec.deletion_policy})'


def _inherits(other: AnyResource, gone: Topic) -> bool:
    """Whether another resource claims the topic and stays."""
    return (
        isinstance(other, Topic)
        and key_of(other) != key_of(gone)
        and (other.metadata.namespace, other.spec.cluster_name) == (gone.metadata.namespace, gone.spec.cluster_name)
        and other.topic_name == gone.topic_name
        and other.metadata.deletion_timestamp is None
    )


def _short(resource: AnyResource) -> str:
    return f"{resource.kind.lower()}.{GROUP}/{resource.name}"


def _yaml(value: dict[str, Any]) -> str:
    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=110).rstrip()


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())
