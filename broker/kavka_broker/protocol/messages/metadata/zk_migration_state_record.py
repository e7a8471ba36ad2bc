"""ZkMigrationStateRecord."""

from kavka_broker.protocol.message import Message


class ZkMigrationStateRecord(Message):
    KIND = "metadata"
    API_KEY = 21
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    __slots__ = ("zk_migration_state",)
    SCHEMA = (
        ("ZkMigrationState", "zk_migration_state", "int8", (0, 0)),
    )

    def __init__(self, zk_migration_state: int = 0) -> None:
        self.zk_migration_state = zk_migration_state
