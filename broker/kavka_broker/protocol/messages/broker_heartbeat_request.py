"""BrokerHeartbeatRequest."""

from kavka_broker.protocol.message import EMPTY, Message


class BrokerHeartbeatRequest(Message):
    KIND = "request"
    API_KEY = 63
    VERSIONS = (0, 2)
    FLEXIBLE_FROM = 0
    __slots__ = (
        "broker_id", "broker_epoch", "current_metadata_offset", "want_fence", "want_shut_down", "offline_log_dirs",
        "cordoned_log_dirs",
    )
    SCHEMA = (
        ("BrokerId", "broker_id", "int32", (0, 2)),
        ("BrokerEpoch", "broker_epoch", "int64", (0, 2), None, None, None, -1),
        ("CurrentMetadataOffset", "current_metadata_offset", "int64", (0, 2)),
        ("WantFence", "want_fence", "bool", (0, 2)),
        ("WantShutDown", "want_shut_down", "bool", (0, 2)),
        ("OfflineLogDirs", "offline_log_dirs", "[]uuid", (1, 2), None, (1, 2), 0),
        ("CordonedLogDirs", "cordoned_log_dirs", "[]uuid", (2, 2), (2, 2), (2, 2), 1, None),
    )

    def __init__(
        self,
        broker_id: int = 0, broker_epoch: int = -1, current_metadata_offset: int = 0, want_fence: bool = False,
        want_shut_down: bool = False, offline_log_dirs: list[bytes] = EMPTY,
        cordoned_log_dirs: list[bytes] | None = None,
    ) -> None:
        self.broker_id = broker_id
        self.broker_epoch = broker_epoch
        self.current_metadata_offset = current_metadata_offset
        self.want_fence = want_fence
        self.want_shut_down = want_shut_down
        self.offline_log_dirs = [] if offline_log_dirs is EMPTY else offline_log_dirs
        self.cordoned_log_dirs = cordoned_log_dirs
