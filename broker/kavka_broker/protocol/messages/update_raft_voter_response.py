"""UpdateRaftVoterResponse."""

from kavka_broker.protocol.message import Message, Struct, frozen


class CurrentLeader(Struct):
    __slots__ = ("leader_id", "leader_epoch", "host", "port")
    SCHEMA = (
        ("LeaderId", "leader_id", "int32", (0, 0), None, None, None, -1),
        ("LeaderEpoch", "leader_epoch", "int32", (0, 0), None, None, None, -1),
        ("Host", "host", "string", (0, 0)),
        ("Port", "port", "int32", (0, 0)),
    )

    def __init__(self, leader_id: int = -1, leader_epoch: int = -1, host: str = "", port: int = 0) -> None:
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.host = host
        self.port = port


DEFAULT_CURRENT_LEADER = frozen(CurrentLeader)


class UpdateRaftVoterResponse(Message):
    KIND = "response"
    API_KEY = 82
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    __slots__ = ("throttle_time_ms", "error_code", "current_leader")
    SCHEMA = (
        ("ThrottleTimeMs", "throttle_time_ms", "int32", (0, 0)),
        ("ErrorCode", "error_code", "int16", (0, 0)),
        ("CurrentLeader", "current_leader", "CurrentLeader", (0, 0), None, (0, 0), 0),
    )

    def __init__(
        self,
        throttle_time_ms: int = 0, error_code: int = 0, current_leader: CurrentLeader = DEFAULT_CURRENT_LEADER,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.current_leader = current_leader
