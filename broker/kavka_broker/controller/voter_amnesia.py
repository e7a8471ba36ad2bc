"""A controller whose memory is gone must not vote as if it had just been born.

Where `controller.quorum.voters` names the voters, a voter is its node id, whatever directory it has. One that starts
with an empty metadata directory would vote again in an epoch in which it has voted, and for a candidate that lacks what
it has helped to commit: decisions would be lost. (Voters in the log, KIP-853, are told apart by their directories.)

What a node has besides says whether it has lived before: partitions, checkpoints, or a metadata log in another of its
directories, when `log.dirs` was written in another order. One that has lost all of its directories at once cannot know.
"""

import os
from typing import Final

from kavka_broker.controller.format import METADATA_DIRECTORY
from kavka_broker.controller.start_errors import CannotStart
from kavka_broker.core.config.broker import BrokerConfig
from kavka_broker.core.raft.quorum_state import FILE_NAME
from kavka_broker.storage import checkpoints
from kavka_broker.storage.disk import Disk
from kavka_broker.storage.file_names import LOG, is_log_file, parse_partition

CHECKPOINT: Final = ".checkpoint"  # the suffix of a snapshot's file
TRACES: Final = (checkpoints.RECOVERY_POINTS, checkpoints.HIGH_WATERMARKS, checkpoints.LOG_STARTS)


def check_memory(disk: Disk, config: BrokerConfig) -> None:
    """Raise CannotStart for a static voter that has lived before and has no metadata log."""
    if "controller" not in config.roles or not config["controller.quorum.voters"]:
        return
    home = os.path.join(config.metadata_log_dir, METADATA_DIRECTORY)
    if any(name == FILE_NAME or name.endswith((LOG, CHECKPOINT)) for name in names(disk, home)):
        return
    traces = [os.path.join(directory, name) for directory in config.log_dirs for name in names(disk, directory)]
    found = sorted(path for path in traces if path != home and _is_trace(disk, path))
    if found:
        path = next((name for name in found if name.endswith(METADATA_DIRECTORY)), found[0])
        raise CannotStart(
            f"{config.metadata_log_dir} holds no metadata log, and node {config.node_id} has run before: there is "
            f"{path}; bring back the directory that had it (metadata.log.dir, or the first of log.dirs). If it is "
            f"lost for good, empty all directories of this node, format them, and start it while the others run"
        )


def _is_trace(disk: Disk, path: str) -> bool:
    """Whether a node has made this: a directory of a user's, as `backup-20261127`, has no files of a log."""
    name = os.path.basename(path)
    return name in TRACES or (parse_partition(name) is not None and any(map(is_log_file, names(disk, path))))


def names(disk: Disk, directory: str) -> list[str]:
    """The names in a directory; none if it is missing or cannot be read, which the start reports later."""
    try:
        return disk.names(directory)
    except OSError:
        return []
