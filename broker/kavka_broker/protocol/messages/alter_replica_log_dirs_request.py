"""AlterReplicaLogDirsRequest."""

from kavka_broker.protocol.message import EMPTY, Message, Struct


class AlterReplicaLogDirTopic(Struct):
    __slots__ = ("name", "partitions")
    SCHEMA = (
        ("Name", "name", "string", (1, 2)),
        ("Partitions", "partitions", "[]int32", (1, 2)),
    )

    def __init__(self, name: str = "", partitions: list[int] = EMPTY) -> None:
        self.name = name
        self.partitions = [] if partitions is EMPTY else partitions


class AlterReplicaLogDir(Struct):
    __slots__ = ("path", "topics")
    SCHEMA = (
        ("Path", "path", "string", (1, 2)),
        ("Topics", "topics", "[]AlterReplicaLogDirTopic", (1, 2)),
    )

    def __init__(self, path: str = "", topics: list[AlterReplicaLogDirTopic] = EMPTY) -> None:
        self.path = path
        self.topics = [] if topics is EMPTY else topics


class AlterReplicaLogDirsRequest(Message):
    KIND = "request"
    API_KEY = 34
    VERSIONS = (1, 2)
    FLEXIBLE_FROM = 2
    __slots__ = ("dirs",)
    SCHEMA = (
        ("Dirs", "dirs", "[]AlterReplicaLogDir", (1, 2)),
    )

    def __init__(self, dirs: list[AlterReplicaLogDir] = EMPTY) -> None:
        self.dirs = [] if dirs is EMPTY else dirs
