"""`kavka apply`: create or change resources, or say what that would do (`--dry-run`)."""

from argparse import ArgumentParser, Namespace
from datetime import UTC, datetime

from kavka_cli.apply_progress import follow
from kavka_cli.dry_run import DryRun, add_dry_run, dry, foresee, tell
from kavka_cli.local_clusters import add_state_directory, state_directory
from kavka_cli.local_resources import full_name, write_to
from kavka_cli.output import CommandError, complain, say
from kavka_cli.resource_files import add_files, declared_by_cluster
from kavka_operator.api.files import BadResourcesError, Declared
from kavka_operator.api.kinds import Key
from kavka_operator.kafka.admin import AdminError
from kavka_operator.platform.local.layout import Layout
from kavka_operator.platform.local.store import Edit, Store

HELP = "Create or change resources; a running cluster follows at once."


def add_options(parser: ArgumentParser) -> None:
    """Add the options of `kavka apply`."""
    add_state_directory(parser)
    add_files(parser)
    add_dry_run(parser)


def run(options: Namespace) -> int:
    """Create or change resources; the exit code."""
    dry_run = DryRun(options.dry_run)
    try:
        groups = declared_by_cluster("apply", options.filename, state_directory(options.state_dir))
        if dry_run is not DryRun.NONE:
            return max(_dry_run(layout, declared, dry_run) for layout, declared in groups.items())
        changed = [_apply_to(layout, declared) for layout, declared in groups.items()]
    except (AdminError, BadResourcesError, CommandError) as error:
        return complain(error)
    return max(follow(layout, keys) for layout, keys in changed)


def _apply_to(layout: Layout, declared: list[Declared]) -> tuple[Layout, list[Key]]:
    edits = write_to(layout, declared)
    for edit in edits:
        say(_line(edit, DryRun.NONE))
    return layout, [edit.key for edit in edits if edit.change != "unchanged"]


def _dry_run(layout: Layout, declared: list[Declared], dry_run: DryRun) -> int:
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
