"""`kavka diff`: what `kavka apply` would change in what is stored, as a unified diff.

The exit code is that of kubectl diff: 0 without a difference, 1 with one, 2 where the question could not be answered.
"""

from argparse import ArgumentParser, Namespace
from datetime import UTC, datetime

from kavka_cli.local_clusters import add_state_directory, state_directory
from kavka_cli.output import CommandError, complain, say
from kavka_cli.resource_diff import unified
from kavka_cli.resource_files import add_files, declared_by_cluster
from kavka_operator.api.files import BadResourcesError
from kavka_operator.platform.local.store import Store

HELP = "Show what `apply` would change, as a unified diff. Exit code 1 where there is a difference, 2 on an error."
DIFFERENT, FAILED = 1, 2


def add_options(parser: ArgumentParser) -> None:
    """Add the options of `kavka diff`."""
    add_state_directory(parser)
    add_files(parser)


def run(options: Namespace) -> int:
    """Print what differs between the stored resources and those of the files; the exit code."""
    try:
        groups = declared_by_cluster("diff", options.filename, state_directory(options.state_dir))
    except (BadResourcesError, CommandError) as error:
        complain(error)
        return FAILED
    now = datetime.now(UTC)
    edits = [edit for layout, declared in groups.items() for edit in Store(layout).preview(declared, now)]
    changed = [edit for edit in edits if edit.change != "unchanged"]
    for edit in changed:
        say("\n".join(unified(edit)))
    return DIFFERENT if changed else 0
