"""Defects by which a broker removes what is not its own."""

from kavka_broker.storage import found_logs, log_removal, new_logs
from kavka_broker.storage.disk import Disk
from tests.sim.teething import Patch, tooth


def remove_all(disk: Disk, path: str) -> bool:
    """Remove a directory with all files that lie in it; where the path is a link, those that it leads to."""
    for name in disk.names(path):
        disk.remove(f"{path}/{name}")
    if disk.link_target(path) is None:
        disk.remove_directory(path)
    else:
        disk.remove(path)
    return True


@tooth("a directory that is named like a log and holds no records is removed, whatever lies in it", "kill", 2,
       foreign=True)  # fmt: skip
def foreign_files_removed(patch: Patch) -> None:
    for module in (found_logs, new_logs):
        patch.setattr(module, "is_unused", lambda disk, path: not log_removal.has_records(disk, path))
        patch.setattr(module, "remove_log", remove_all)


@tooth("a new topic removes the directory that has the name of its log", "reset", seeds="1 2 3 4 5",
       changes="create_topic delete_topic", foreign=True)  # fmt: skip
def foreign_files_replaced(patch: Patch) -> None:
    patch.setattr(new_logs, "is_unused", lambda disk, path: not log_removal.has_records(disk, path))
    patch.setattr(new_logs, "remove_log", remove_all)


@tooth("a link that is named like a log is followed when it is removed", "kill", 2, foreign=True)
def links_followed(patch: Patch) -> None:
    def is_unused(disk: Disk, path: str) -> bool:
        return not log_removal.unknown_files(disk, path) and not log_removal.has_records(disk, path)

    patch.setattr(found_logs, "is_unused", is_unused)
    patch.setattr(found_logs, "remove_log", remove_all)
