"""AlterReplicaLogDirsRequest: request, key 34, versions 1 to 2, flexible from 2.

Generated from Apache Kafka's schema by tools/generate_messages; not edited by hand.
"""

from __future__ import annotations

from kavka_broker.protocol.message import EMPTY, Message, Struct


class AlterReplicaLogDirTopic(Struct):
    __match_args__ = ("name", "partitions")
    __slots__ = __match_args__
    SCHEMA = (
        ("Name", "name", "string", (1, 2)),
        ("Partitions", "partitions", "[]int32", (1, 2)),
    )

    def __init__(self, name: str = "", partitions: list[int] = EMPTY) -> None:
        self.name = name
        self.partitions = [] if partitions is EMPTY else partitions


class AlterReplicaLogDir(Struct):
    __match_args__ = ("path", "topics")
    __slots__ = __match_args__
    SCHEMA = (
        ("Path", "path", "string", (1, 2)),
        ("Topics", "topics", "[]AlterReplicaLogDirTopic", (1, 2)),
    )

    def __init__(self, path: str = "", topics: list[AlterReplicaLogDirTopic] = EMPTY) -> None:
        self.path = path
        self.topics = [] if topics is EMPTY else topics


class AlterReplicaLogDirsRequest(Message):
    NAME = "AlterReplicaLogDirsRequest"
    KIND = "request"
    API_KEY = 34
    VERSIONS = (1, 2)
    FLEXIBLE_FROM = 2
    __match_args__ = ("dirs",)
    __slots__ = __match_args__
    SCHEMA = (
        ("Dirs", "dirs", "[]AlterReplicaLogDir", (1, 2)),
    )

    def __init__(self, dirs: list[AlterReplicaLogDir] = EMPTY) -> None:
        self.dirs = [] if dirs is EMPTY else dirs
