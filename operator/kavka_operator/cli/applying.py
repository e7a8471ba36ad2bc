"""`kavka apply`: create or change resources, or say what that would do (`--dry-run`)."""

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.api.files import BadResourcesError, Declared, load
from kavka_operator.api.kinds import Key
from kavka_operator.cli.following import follow
from kavka_operator.cli.foreseeing import DryRun, dry, foresee, tell
from kavka_operator.cli.stored import full_name, known_resources, layout_of
from kavka_operator.cli.words import CommandError, complain, is_running, say, state_directory
from kavka_operator.kafka.admin import AdminError
from kavka_operator.platform.local import members
from kavka_operator.platform.local.layout import Layout
from kavka_operator.platform.local.limits import lost_volumes, unsupported
from kavka_operator.platform.local.store import Edit, Store


def apply(files: list[Path], chosen_state: Path | None, dry_run: DryRun = DryRun.NONE) -> int:
    """Create or change resources; the exit code."""
    try:
        groups = declared_by_cluster("apply", files, state_directory(chosen_state))
        if dry_run is not DryRun.NONE:
            return max(_rehearse(layout, declared, dry_run) for layout, declared in groups.items())
        changed = [_apply_to(layout, declared) for layout, declared in groups.items()]
    except (AdminError, BadResourcesError, CommandError) as error:
        return complain(error)
    return max(follow(layout, keys) for layout, keys in changed)


def declared_by_cluster(command: str, files: list[Path], state: Path) -> dict[Layout, list[Declared]]:
    """Resources that the files declare, checked, by cluster. Raises BadResourcesError and CommandError."""
    if not files:
        raise CommandError(f"name a resource file: kavka {command} -f FILE")
    declared = load(files, known_resources(state))
    _refuse_unsupported(declared, state)
    groups: dict[Layout, list[Declared]] = {}
    for entry in declared:
        groups.setdefault(layout_of(entry.resource, state), []).append(entry)
    return groups


def _refuse_unsupported(declared: Iterable[Declared], state: Path) -> None:
    """Raise CommandError for a cluster that cannot be run, and print notes on those that can."""
    for entry in declared:
        cluster = entry.resource
        if isinstance(cluster, KafkaCluster):
            layout = layout_of(cluster, state)
            known = members.read(layout)
            if problem := unsupported(cluster, layout, known) or lost_volumes(cluster, layout, known):
                raise CommandError(problem)


def _apply_to(layout: Layout, declared: list[Declared]) -> tuple[Layout, list[Key]]:
    layout.make()
    if not is_running(layout):
        members.upgrade(layout)
    edits = Store(layout).apply(declared, datetime.now(UTC))
    for edit in edits:
        say(_line(edit, DryRun.NONE))
    return layout, [edit.key for edit in edits if edit.change != "unchanged"]


def _rehearse(layout: Layout, declared: list[Declared], dry_run: DryRun) -> int:
    """Say what `apply` would do to one cluster; the exit code."""
    edits = Store(layout).preview(declared, datetime.now(UTC))
    if dry_run is DryRun.CLIENT:
        for edit in edits:
            say(_line(edit, dry_run))
        return 0
    changed = {edit.key: edit.after for edit in edits if edit.change != "unchanged"}
    foreseen = foresee(layout, changed, ()) if changed else {}
    return max([0, *(tell(_line(edit, dry_run), edit.key, foreseen.get(edit.key)) for edit in edits)])


def _line(edit: Edit, dry_run: DryRun) -> str:
    return f"{full_name(edit.key[0], edit.key[2])} {edit.change}{dry(dry_run)}"
