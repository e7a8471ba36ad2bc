"""`kavka audit convert`: holds both directories, converts, and says what was done."""

import time
from pathlib import Path

from kavka_audit.delta.convert import convert
from kavka_audit.delta.directory_names import check_directory
from kavka_audit.lake.directory import Lake, LakeError
from kavka_audit.lake.errors import told
from kavka_audit.lake.ingest import Ingested
from kavka_audit_run.main import progress
from kavka_cli.output import complain, say


def run_convert(directory: Path, to: Path) -> int:
    """Convert a directory into another; the exit code."""
    source, target, so_far = Lake(directory), Lake(to, table_format="delta", is_converted=True), Ingested()
    try:
        cluster_id, table_format = source.claim()
        if table_format != "parquet":
            raise LakeError(f"{directory} has Delta tables already")
        check_directory(to)
        with told(source), source.read(), told(target), target.held(cluster_id):
            for so_far in convert(source, target, int(time.time() * 1000)):
                progress(f"{so_far.records:,} rows converted")
            target.end_conversion(cluster_id)
    except LakeError as error:
        return complain(error)
    say(f"{so_far.records} rows are new in {to}; {directory} is as it was")
    say(f"go on with: kavka audit run --table-format delta --directory {to}")
    return 0
