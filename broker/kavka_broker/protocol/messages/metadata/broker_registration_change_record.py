"""BrokerRegistrationChangeRecord."""

from kavka_broker.protocol.message import EMPTY, Message


class BrokerRegistrationChangeRecord(Message):
    KIND = "metadata"
    API_KEY = 17
    VERSIONS = (0, 3)
    FLEXIBLE_FROM = 0
    __slots__ = ("broker_id", "broker_epoch", "fenced", "in_controlled_shutdown", "log_dirs", "cordoned_log_dirs")
    SCHEMA = (
        ("BrokerId", "broker_id", "int32", (0, 3)),
        ("BrokerEpoch", "broker_epoch", "int64", (0, 3)),
        ("Fenced", "fenced", "int8", (0, 3), None, (0, 3), 0),
        ("InControlledShutdown", "in_controlled_shutdown", "int8", (1, 3), None, (1, 3), 1),
        ("LogDirs", "log_dirs", "[]uuid", (2, 3), None, (2, 3), 2),
        ("CordonedLogDirs", "cordoned_log_dirs", "[]uuid", (3, 3), (3, 3), (3, 3), 3, None),
    )

    def __init__(
        self,
        broker_id: int = 0, broker_epoch: int = 0, fenced: int = 0, in_controlled_shutdown: int = 0,
        log_dirs: list[bytes] = EMPTY, cordoned_log_dirs: list[bytes] | None = None,
    ) -> None:
        self.broker_id = broker_id
        self.broker_epoch = broker_epoch
        self.fenced = fenced
        self.in_controlled_shutdown = in_controlled_shutdown
        self.log_dirs = [] if log_dirs is EMPTY else log_dirs
        self.cordoned_log_dirs = cordoned_log_dirs
