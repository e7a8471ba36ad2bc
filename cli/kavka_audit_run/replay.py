"""`kavka audit replay`: holds a directory, reads its dead letters again, and says what became of them."""

import time
from pathlib import Path

from kavka_audit.delta.dead_letter_replay import Replayed, replay
from kavka_audit.lake.directory import Lake, LakeError
from kavka_audit.lake.errors import told
from kavka_audit_run.main import progress
from kavka_cli.output import complain, say

PROBLEMS_MAX = 20
"""Reasons that are printed, those of most dead letters."""


def run_replay(directory: Path, *, is_dry_run: bool) -> int:
    """Read the dead letters of a directory again; the exit code."""
    lake, so_far = Lake(directory, table_format="delta"), Replayed()
    try:
        cluster_id, table_format = lake.claim()
        if table_format != "delta":
            raise LakeError(f"{directory} has Parquet files, and dead letters are in Delta tables alone")
        with told(lake), lake.held(cluster_id):
            for so_far in replay(lake, int(time.time() * 1000), is_dry_run=is_dry_run):
                progress(f"{so_far.events:,} dead letters are events")
    except LakeError as error:
        return complain(error)
    _print(so_far, directory, is_dry_run=is_dry_run)
    return 0


def _print(found: Replayed, directory: Path, *, is_dry_run: bool) -> None:
    verb = "would be" if is_dry_run else "are"
    say(f"{found.events} dead letters {verb} events now; {found.problems.total()} are none")
    for problem, count in found.problems.most_common(PROBLEMS_MAX):
        say(f"    {count}: {problem}")
    if found.events and not is_dry_run:
        say(f"the next run counts them: kavka audit run --directory {directory}")
