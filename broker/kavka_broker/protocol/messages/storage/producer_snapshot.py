"""ProducerSnapshot."""

from kavka_broker.protocol.message import EMPTY, Message, Struct


class ProducerEntry(Struct):
    __slots__ = (
        "producer_id", "epoch", "last_sequence", "last_offset", "offset_delta", "timestamp", "coordinator_epoch",
        "current_txn_first_offset",
    )
    SCHEMA = (
        ("ProducerId", "producer_id", "int64", (1, 1)),
        ("Epoch", "epoch", "int16", (1, 1)),
        ("LastSequence", "last_sequence", "int32", (1, 1)),
        ("LastOffset", "last_offset", "int64", (1, 1)),
        ("OffsetDelta", "offset_delta", "int32", (1, 1)),
        ("Timestamp", "timestamp", "int64", (1, 1)),
        ("CoordinatorEpoch", "coordinator_epoch", "int32", (1, 1)),
        ("CurrentTxnFirstOffset", "current_txn_first_offset", "int64", (1, 1)),
    )

    def __init__(
        self,
        producer_id: int = 0, epoch: int = 0, last_sequence: int = 0, last_offset: int = 0, offset_delta: int = 0,
        timestamp: int = 0, coordinator_epoch: int = 0, current_txn_first_offset: int = 0,
    ) -> None:
        self.producer_id = producer_id
        self.epoch = epoch
        self.last_sequence = last_sequence
        self.last_offset = last_offset
        self.offset_delta = offset_delta
        self.timestamp = timestamp
        self.coordinator_epoch = coordinator_epoch
        self.current_txn_first_offset = current_txn_first_offset


class ProducerSnapshot(Message):
    KIND = "data"
    VERSIONS = (1, 1)
    __slots__ = ("crc", "producer_entries")
    SCHEMA = (
        ("Crc", "crc", "uint32", (1, 1)),
        ("ProducerEntries", "producer_entries", "[]ProducerEntry", (1, 1)),
    )

    def __init__(self, crc: int = 0, producer_entries: list[ProducerEntry] = EMPTY) -> None:
        self.crc = crc
        self.producer_entries = [] if producer_entries is EMPTY else producer_entries
