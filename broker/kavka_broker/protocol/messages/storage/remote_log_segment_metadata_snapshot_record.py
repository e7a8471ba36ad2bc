"""RemoteLogSegmentMetadataSnapshotRecord: metadata, key 3, version 0, flexible from 0.

Generated from Apache Kafka's schema by tools/generate_messages; not edited by hand.
"""

from __future__ import annotations

from kavka_broker.protocol.message import EMPTY, ZERO, Message, Struct


class SegmentLeaderEpochEntry(Struct):
    __match_args__ = ("leader_epoch", "offset")
    __slots__ = __match_args__
    SCHEMA = (
        ("LeaderEpoch", "leader_epoch", "int32", (0, 0), None, None, None, 0, False, None),
        ("Offset", "offset", "int64", (0, 0), None, None, None, 0, False, None),
    )

    def __init__(self, leader_epoch: int = 0, offset: int = 0) -> None:
        self.leader_epoch = leader_epoch
        self.offset = offset


class RemoteLogSegmentMetadataSnapshotRecord(Message):
    NAME = "RemoteLogSegmentMetadataSnapshotRecord"
    KIND = "metadata"
    API_KEY = 3
    VERSIONS = (0, 0)
    FLEXIBLE_FROM = 0
    __match_args__ = (
        "segment_id",
        "start_offset",
        "end_offset",
        "broker_id",
        "max_timestamp_ms",
        "event_timestamp_ms",
        "segment_leader_epochs",
        "segment_size_in_bytes",
        "custom_metadata",
        "remote_log_segment_state",
        "txn_index_empty",
    )
    __slots__ = __match_args__
    SCHEMA = (
        ("SegmentId", "segment_id", "uuid", (0, 0), None, None, None, b"", False, None),
        ("StartOffset", "start_offset", "int64", (0, 0), None, None, None, 0, False, None),
        ("EndOffset", "end_offset", "int64", (0, 0), None, None, None, 0, False, None),
        ("BrokerId", "broker_id", "int32", (0, 0), None, None, None, 0, False, None),
        ("MaxTimestampMs", "max_timestamp_ms", "int64", (0, 0), None, None, None, 0, False, None),
        ("EventTimestampMs", "event_timestamp_ms", "int64", (0, 0), None, None, None, 0, False, None),
        (
            "SegmentLeaderEpochs", "segment_leader_epochs", "[]SegmentLeaderEpochEntry",
            (0, 0), None, None, None, b"", False, None,
        ),
        (
            "SegmentSizeInBytes", "segment_size_in_bytes", "int32",
            (0, 0), None, None, None, 0, False, None,
        ),
        ("CustomMetadata", "custom_metadata", "bytes", (0, 0), (0, 0), None, None, None, False, None),
        (
            "RemoteLogSegmentState", "remote_log_segment_state", "int8",
            (0, 0), None, None, None, 0, False, None,
        ),
        ("TxnIndexEmpty", "txn_index_empty", "bool", (0, 0), None, (0, 0), 0, False, False, None),
    )

    def __init__(
        self,
        segment_id: bytes = ZERO,
        start_offset: int = 0,
        end_offset: int = 0,
        broker_id: int = 0,
        max_timestamp_ms: int = 0,
        event_timestamp_ms: int = 0,
        segment_leader_epochs: list[SegmentLeaderEpochEntry] = EMPTY,
        segment_size_in_bytes: int = 0,
        custom_metadata: bytes | None = None,
        remote_log_segment_state: int = 0,
        txn_index_empty: bool = False,
    ) -> None:
        self.segment_id = segment_id
        self.start_offset = start_offset
        self.end_offset = end_offset
        self.broker_id = broker_id
        self.max_timestamp_ms = max_timestamp_ms
        self.event_timestamp_ms = event_timestamp_ms
        self.segment_leader_epochs = [] if segment_leader_epochs is EMPTY else segment_leader_epochs
        self.segment_size_in_bytes = segment_size_in_bytes
        self.custom_metadata = custom_metadata
        self.remote_log_segment_state = remote_log_segment_state
        self.txn_index_empty = txn_index_empty
