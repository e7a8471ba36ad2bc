"""`kavka diff`: what `kavka apply` would change in what is stored, as a unified diff.

The exit code is that of kubectl diff: 0 without a difference, 1 with one, 2 where the question could not be answered.
"""

import difflib
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import yaml

from kavka_cli.local_clusters import add_state_directory, state_directory
from kavka_cli.output import CommandError, complain, say
from kavka_cli.resource_files import add_files, declared_by_cluster
from kavka_operator.api import API_VERSION
from kavka_operator.api.files import BadResourcesError
from kavka_operator.platform.local.store import Edit, Store

HELP = "Show what `apply` would change, as a unified diff. Exit code 1 where there is a difference, 2 on an error."
DIFFERENT, FAILED = 1, 2
GIVEN_BY_THE_STORE = ("uid", "creationTimestamp", "generation")


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
        say("\n".join(_unified(edit)))
    return DIFFERENT if changed else 0


def _unified(edit: Edit) -> Iterator[str]:
    name = ".".join((API_VERSION.replace("/", "."), *edit.key))
    yield f"diff -u -N LIVE/{name} MERGED/{name}"
    before, after = _lines(edit.before), _lines(edit.after)
    yield from difflib.unified_diff(before, after, f"LIVE/{name}", f"MERGED/{name}", lineterm="")


def _lines(document: dict[str, Any] | None) -> list[str]:
    """Lines of a resource that a person can have written, in an order that does not depend on the file."""
    if document is None:
        return []
    metadata = {key: value for key, value in document["metadata"].items() if key not in GIVEN_BY_THE_STORE}
    return yaml.safe_dump({**document, "metadata": metadata}, allow_unicode=True, width=110).splitlines()
