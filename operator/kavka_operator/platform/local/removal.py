"""Removes a local cluster with its records: what Kavka made of it, and nothing else.

What lies in its directories and is not Kavka's stays where it is, and is named. A link is removed, never followed.
"""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from kavka_broker.core.config.properties import parse_properties
from kavka_operator.platform.local.files import read_text
from kavka_operator.platform.local.layout import Layout
from kavka_operator.platform.local.node_identity import META_PROPERTIES

PARTITION: Final = re.compile(r".+-\d+(\.[0-9a-f]+-(delete|future|stray))?")
METADATA: Final = "partition.metadata"
CLUSTER_METADATA: Final = "__cluster_metadata-0"
OF_A_LOG_DIRECTORY: Final = frozenset({META_PROPERTIES, ".lock", ".kafka_cleanshutdown", "bootstrap.checkpoint"})
"""Files of a log directory, beside its checkpoints."""
CHECKPOINT: Final = re.compile(r"[a-z-]+-checkpoint(\.tmp)?|cleaner-[a-z-]+")


def remove(layout: Layout) -> list[Path]:
    """Remove a cluster that does not run; returns what was left because it is not Kavka's."""
    for volume in _volumes(layout):
        _empty(layout, volume)
    for owned in layout.owned():
        _remove(owned)
    if _prune(layout.root):
        return []
    return sorted(path for path in layout.root.rglob("*") if path.is_symlink() or not path.is_dir())


def _volumes(layout: Layout) -> Iterator[Path]:
    for node in sorted((layout.root / "data").glob("node-*")):
        if not node.is_symlink():
            yield from (volume for volume in sorted(node.iterdir()) if volume.is_dir() and not volume.is_symlink())


def _empty(layout: Layout, volume: Path) -> None:
    """Remove what is Kavka's of a log directory, where it is formatted for this cluster."""
    owner = parse_properties(read_text(volume / META_PROPERTIES) or "").get("cluster.id")
    if owner is None or owner != (read_text(layout.cluster_id) or "").strip():
        return
    for entry in sorted(volume.iterdir()):
        if _is_owned(entry):
            _remove(entry)


def _is_owned(entry: Path) -> bool:
    if entry.is_symlink():
        return False
    if entry.is_dir():
        is_partition = PARTITION.fullmatch(entry.name) is not None and (entry / METADATA).exists()
        return is_partition or entry.name == CLUSTER_METADATA
    return entry.name in OF_A_LOG_DIRECTORY or CHECKPOINT.fullmatch(entry.name) is not None


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)  # follows no link
    else:
        path.unlink(missing_ok=True)


def _prune(directory: Path) -> bool:
    """Remove a directory and those below as far as they are empty; whether it is gone."""
    gone = [_prune(entry) if entry.is_dir() and not entry.is_symlink() else False for entry in directory.iterdir()]
    if all(gone):
        directory.rmdir()
    return all(gone)
