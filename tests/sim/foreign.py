"""ForeignStays: what a user has put into a log directory lies there at the end, byte for byte.

A log directory is a directory of the file system: users keep backups beside the logs, and replace directories by
symbolic links. In some seeds each node has the following since its first start, of which a part has names that topics
may take:

    backup-20261127/        a directory that is named like a log, with a file of the user's
    spare1-0/               another, in the place of a log that is made at run time
    linked-7                a link to a directory elsewhere, which holds a segment without records
    spare2-0                another link

A directory may get another name, with `-stray` at its end, or with `-delete` where a log was made in it and deleted:
what the broker does not know stays in it. A link may go, and what it leads to may not.
"""

from typing import Any, Final

Simulation = Any

LOGS: Final = "/data"  # the first directory, which is never unmounted
ELSEWHERE: Final = "/elsewhere"
RENAMED: Final = ("-stray", "-delete")
TEXT: Final = b"insert into orders values (1)\n" * 20
DIRECTORIES: Final = {"backup-20261127": "dump.sql", "spare1-0": "notes.txt"}
LINKS: Final = ("linked-7", "spare2-0")
SEGMENT: Final = f"{0:020}.log"


def plant(simulation: Simulation) -> None:
    """Put it on the disk of each node."""
    for node in simulation.nodes if simulation.shape.has_foreign else ():
        for directory, name in DIRECTORIES.items():
            node.disk.make_directory(f"{LOGS}/{directory}")
            node.disk.write_file(f"{LOGS}/{directory}/{name}", TEXT)
        for link in LINKS:
            node.disk.make_directory(f"{ELSEWHERE}/{link}")
            node.disk.write_file(f"{ELSEWHERE}/{link}/{SEGMENT}", b"")
            node.disk.link(f"{LOGS}/{link}", f"{ELSEWHERE}/{link}")
        for directory in (ELSEWHERE, LOGS, "/"):
            node.disk.sync_directory(directory)


def missing_foreign(simulation: Simulation) -> list[str]:
    """What of it is gone, or is not what it was."""
    gone = []
    for node in simulation.nodes if simulation.shape.has_foreign else ():
        there = node.disk.directories(LOGS)
        for directory, name in DIRECTORIES.items():
            places = [directory, *(entry for entry in there if is_renamed_of(entry, directory))]
            files = [node.disk.peek(f"{LOGS}/{place}").get(name) for place in places]
            if not any(file is not None and bytes(file.data) == TEXT for file in files):
                gone.append(f"ForeignStays: {node.host}: {LOGS}/{directory}/{name} is gone; there are {there}")
        gone += [
            f"ForeignStays: {node.host}: {ELSEWHERE}/{link}/{SEGMENT}, to which a link led, is gone"
            for link in LINKS
            if SEGMENT not in node.disk.peek(f"{ELSEWHERE}/{link}")
        ]
        simulation.events.counts["played.foreign_set_aside"] += any(
            is_renamed_of(entry, directory) for entry in there for directory in DIRECTORIES
        )
    return gone


def is_renamed_of(entry: str, directory: str) -> bool:
    """Whether a directory of this name may be what had the other name before."""
    return entry.startswith(f"{directory}.") and entry.endswith(RENAMED)
