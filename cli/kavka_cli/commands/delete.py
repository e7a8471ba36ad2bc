"""`kavka delete`: let go of resources, or say what that would do (`--dry-run`)."""

import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from kavka_cli.dry_run import DryRun, add_dry_run, dry, foresee, tell
from kavka_cli.local_clusters import add_local_namespace, add_state_directory, is_running, state_directory
from kavka_cli.local_resources import full_name, known_resources, layout_of, not_found
from kavka_cli.output import CommandError, complain, say
from kavka_cli.resource_files import add_files
from kavka_cli.resource_names import ALL, add_resource_names, parse_names
from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.api.files import BadResourcesError, load
from kavka_operator.api.kinds import AnyResource, Key, cluster_key, key_of
from kavka_operator.api.stored_resources import Unreadable
from kavka_operator.api.topic import Topic
from kavka_operator.kafka.admin import AdminError
from kavka_operator.platform.local.layout import Layout, clusters
from kavka_operator.platform.local.store import Store

HELP = "Delete resources. A topic's records go only if its deletionPolicy says so."
GONE_SECONDS_MAX = 30.0
POLL_SECONDS = 0.05

Doomed = AnyResource | Unreadable


def add_options(parser: ArgumentParser) -> None:
    """Add the options of `kavka delete`."""
    add_state_directory(parser)
    add_resource_names(parser)
    add_files(parser)
    add_dry_run(parser)
    add_local_namespace(parser)


def run(options: Namespace) -> int:
    """Delete resources; the exit code."""
    state, dry_run = state_directory(options.state_dir), DryRun(options.dry_run)
    try:
        known = known_resources(state)
        doomed = _in_files(options.filename, known) if options.filename else _named(options, known, state)
        located = [(target, _layout(target, state)) for target in doomed]
        others = [pair for pair in located if _key(pair[0])[0] != KafkaCluster.kind_name]
        code = _dry_run(others, known.values(), dry_run) if dry_run is not DryRun.NONE else 0
        for target, layout in others if dry_run is DryRun.NONE else ():
            _delete(target, layout, known.values())
        for target, layout in located:
            _refuse_cluster(target, layout)
    except (AdminError, BadResourcesError, CommandError) as error:
        return complain(error)
    return code


def _named(options: Namespace, known: dict[Key, AnyResource], state: Path) -> list[Doomed]:
    """The resources that the words name, readable or not. Raises CommandError."""
    words, namespace = options.words, options.namespace
    named = parse_names(words) if words and words[0] not in ALL else []
    if not named or any(name is None for _, name in named):
        raise CommandError("name what to delete: kavka delete KIND NAME, or kavka delete -f FILE")
    unreadable = {unread.key: unread for layout in clusters(state) for unread in Store(layout).read()[1]}
    found = {(kind, namespace, str(name)) for kind, name in named} & {*known, *unreadable}
    if missing := [pair for pair in named if (pair[0], namespace, pair[1]) not in found]:
        raise CommandError(not_found(*missing[0], namespace))
    keys = [(kind, namespace, str(name)) for kind, name in named]
    return [known[key] if key in known else unreadable[key] for key in keys]


def _in_files(files: list[Path], known: dict[Key, AnyResource]) -> list[Doomed]:
    """The resources that the files declare and that exist; clusters last, as the others need them."""
    keys = [declared.key for declared in load(files, known, is_change=False)]
    return [known[key] for key in reversed(keys) if key in known]


def _layout(doomed: Doomed, state: Path) -> Layout:
    if not isinstance(doomed, Unreadable):
        return layout_of(doomed, state)
    return next(layout for layout in clusters(state) if Store(layout).has(doomed.key))


def _key(doomed: Doomed) -> Key:
    return doomed.key if isinstance(doomed, Unreadable) else key_of(doomed)


def _refuse_cluster(doomed: Doomed, layout: Layout) -> None:
    """Raise CommandError for a KafkaCluster, which is not deleted while it has records."""
    kind, _, name = _key(doomed)
    if kind == KafkaCluster.kind_name:
        fix = "apply it again to mend it" if isinstance(doomed, Unreadable) else "kavka down --volumes removes both"
        raise CommandError(f'{kind} "{name}" has its records in {layout.root}; {fix}')


def _dry_run(located: Sequence[tuple[Doomed, Layout]], known: Iterable[AnyResource], dry_run: DryRun) -> int:
    """Say what `delete` would do; the exit code."""
    codes = [0]
    by_layout: dict[Layout, list[Doomed]] = {}
    for target, layout in located:
        by_layout.setdefault(layout, []).append(target)
    for layout, doomed in by_layout.items():
        gone = [_key(target) for target in doomed if not isinstance(target, Unreadable)]
        foreseen = foresee(layout, {}, gone) if dry_run is DryRun.SERVER else {}
        for target in doomed:
            kind, _, name = _key(target)
            line = f"{full_name(kind, name)} deleted{dry(dry_run)}{_what_stays(target, known)}"
            codes.append(tell(line, _key(target), foreseen.get(_key(target))))
    return max(codes)


def _delete(doomed: Doomed, layout: Layout, known: Iterable[AnyResource]) -> None:
    key = _key(doomed)
    Store(layout).mark_deleted(key, datetime.now(UTC))
    runs, name = is_running(layout), full_name(key[0], key[2])
    if runs:
        _wait_until_gone(layout, key)
    if isinstance(doomed, Unreadable):
        say(f"{name} marked; it could not be understood, and what it has set in Kafka stays")
    elif runs:
        say(f"{name} deleted{_what_stays(doomed, known)}")
    else:
        say(f"{name} marked; it goes when the cluster runs")


def _wait_until_gone(layout: Layout, key: Key) -> None:
    """Wait until the running cluster has released the resource. Raises CommandError."""
    deadline = time.monotonic() + GONE_SECONDS_MAX
    while Store(layout).has(key):
        if time.monotonic() > deadline:
            words = f"is still there after {GONE_SECONDS_MAX:.0f} s; see `kavka describe`"
            raise CommandError(f'{key[0]} "{key[2]}" {words}')
        time.sleep(POLL_SECONDS)


def _what_stays(doomed: Doomed, known: Iterable[AnyResource]) -> str:
    if not isinstance(doomed, Topic):
        return ""
    if heir := next((resource for resource in known if _inherits(resource, doomed)), None):
        return f'; topic "{doomed.topic_name}" itself stays: {heir.identity} declares it too'
    if doomed.spec.deletion_policy == "Delete":
        return ""
    kept = "stays" if doomed.spec.deletion_policy == "Retain" else "stays if it holds records"
    return f'; topic "{doomed.topic_name}" itself {kept} (deletionPolicy: {doomed.spec.deletion_policy})'


def _inherits(other: AnyResource, gone: Topic) -> bool:
    """Whether another resource claims the topic and stays."""
    return (
        isinstance(other, Topic)
        and key_of(other) != key_of(gone)
        and cluster_key(other) == cluster_key(gone)
        and other.topic_name == gone.topic_name
        and other.metadata.deletion_timestamp is None
    )
