"""What lies in the log directories of a node of this machine: looked up in the directories themselves.

They tell more than a broker's DescribeLogDirs: also what a broker that is down would hold, what it set aside, and the
directories that it was never told of.
"""

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from kavka_operator.domain.observed import SeenVolume
from kavka_operator.platform.local.layout import Layout
from kavka_operator.platform.local.node_identity import META_PROPERTIES
from kavka_operator.reconcile.volumes import METADATA_LOG

NO_LOGS = ("lost+found",)
DELETED = "-delete"  # what a broker is about to remove


def look(layout: Layout, node: int, used: Mapping[str, str]) -> tuple[SeenVolume, ...]:
    """The volumes of a node: those that it has `used`, the one with the metadata log first, and any others there."""
    others = [name for name in _directories(layout.data(node)) if name not in used]
    first = next(iter(used), None)
    found = [_look(layout.data(node) / name, is_first=name == first, was_used=True) for name in used]
    found += [_look(layout.data(node) / name, is_first=False, was_used=False) for name in others]
    return tuple(replace(volume, directory_id=used.get(volume.name, "")) for volume in found)


def _look(path: Path, *, is_first: bool, was_used: bool) -> SeenVolume:
    try:
        names = _directories(path)
        is_there = (path / META_PROPERTIES).exists() or bool(names and not was_used)
    except OSError:
        return SeenVolume(path.name, str(path), None, was_used, is_there=True, has_metadata=is_first)
    logs = tuple(name for name in names if not name.endswith(DELETED) and name not in NO_LOGS)
    has_metadata = is_first or METADATA_LOG in logs
    return SeenVolume(path.name, str(path), logs, was_used, is_there, has_metadata)


def _directories(path: Path) -> list[str]:
    """The names of the directories in a directory, sorted; empty if it is not there."""
    try:
        with os.scandir(path) as entries:
            return sorted(entry.name for entry in entries if entry.is_dir())
    except FileNotFoundError:
        return []
