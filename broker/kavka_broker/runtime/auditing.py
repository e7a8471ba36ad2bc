"""The audit trail of this broker: once a second, what happened to clients goes to the audit topic.

The broker writes as a producer does, to the leader of its partition and with numbered batches, so that a batch that is
sent again is not written twice and none overtakes another. Where the topic takes none, events wait in the journal; it
counts what it has no room for. No client is refused because of that.
"""

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Final

from kavka_broker.api.a00_produce import ADMIN_CLIENT_ID
from kavka_broker.api.broker import Broker
from kavka_broker.core.audit.chain import KEY_BYTES_MIN, Chain, Entry, Kind
from kavka_broker.core.audit.cloud_events import headers_of
from kavka_broker.core.audit.journal import Journal
from kavka_broker.core.config.broker import BrokerConfig
from kavka_broker.core.config.definition import ConfigError
from kavka_broker.core.metadata.image.topic_names import AUDIT_TOPIC
from kavka_broker.logs import get
from kavka_broker.peers import Peer, Unreachable
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kavka_broker.protocol.messages.produce_response import ProduceResponse
from kavka_broker.protocol.records.record import Record, build_batch

log = get("audit")

KEY_FILE: Final = "kavka.audit.key.file"
WINDOW_MS: Final = 1_000
WRITE_MS_MAX: Final = 10_000
STOP_MS_MAX: Final = 5_000
ALL_REPLICAS: Final = -1
SEQUENCE_MODULUS: Final = 1 << 31
NUMBERED_WRONGLY: Final = frozenset(
    {ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.UNKNOWN_PRODUCER_ID, ErrorCode.INVALID_PRODUCER_EPOCH}
)


def key_of(config: BrokerConfig) -> bytes | None:
    """Return the key that signs the heads of chains; None where no trail is kept. Raises ConfigError."""
    name = config["kavka.audit.key.file"]
    if not name:
        return None
    try:
        key = Path(name).read_bytes().strip()
    except OSError as problem:
        raise ConfigError(KEY_FILE, f"{name} cannot be read: {problem.strerror}") from problem
    if len(key) < KEY_BYTES_MIN:
        words = f"{name} has {len(key)} bytes; a key has {KEY_BYTES_MIN} or more (openssl rand -hex 32 makes one)"
        raise ConfigError(KEY_FILE, words)
    return key


class Auditing:
    """Writes the audit trail of one broker from its start to its stop."""

    def __init__(self, broker: Broker, key: bytes) -> None:
        self.written_total = 0
        self.journal: Journal | None = None  # from the start on
        self._broker = broker
        self._key = key
        self._unsent: list[Entry] = []
        self._task: asyncio.Task[None] | None = None
        self._peer: tuple[tuple[str, int], Peer] | None = None  # the leader of the partition
        self._producer_id = -1
        self._base_sequence = 0
        self._is_failing = False  # which has been logged

    def start(self) -> None:
        """Begin a chain, named by this registration of the broker, and count from now on."""
        source = f"{self._broker.node_id}-{self._broker.lifecycle.broker_epoch}"
        interval_ms = self._broker.config["kavka.audit.interval.ms"]
        self.journal = Journal(Chain(source, self._key), self._broker.clock.now_ms(), interval_ms)
        self._broker.audit, self._broker.use = self.journal.window, self.journal.use
        self._task = asyncio.create_task(self._run(self.journal), name="audit")

    async def stop(self) -> None:
        """End the chain: write what waits, and the last head, where the topic takes it in time."""
        assert self._task is not None
        assert self.journal is not None
        self._broker.audit = self._broker.use = None
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        with suppress(TimeoutError):
            async with asyncio.timeout(STOP_MS_MAX / 1000):
                while True:
                    if await self._write(self.journal, is_last=True):
                        break
                    await asyncio.sleep(WINDOW_MS / 1000)
        if self._peer is not None:
            self._peer[1].close()

    async def _run(self, journal: Journal) -> None:
        while True:
            await asyncio.sleep(WINDOW_MS / 1000)
            await self._write(journal)

    async def _write(self, journal: Journal, *, is_last: bool = False) -> bool:
        """Write all that waits; returns whether the topic took it."""
        journal.close_window(self._broker.clock.now_ms(), is_last=is_last)
        try:
            while True:
                self._unsent = self._unsent or journal.batch(self._broker.clock.now_ms(), is_last=is_last)
                if not self._unsent:
                    break
                await self._send(self._unsent)
                self.written_total += sum(entry.kind is Kind.EVENT for entry in self._unsent)
                is_ended, self._unsent = self._unsent[-1].kind is Kind.END, []
                if is_ended:
                    break
        except (BrokerError, Unreachable) as problem:
            if not self._is_failing:
                log.warning("audit.not_written", topic=AUDIT_TOPIC, waiting=journal.waiting, reason=str(problem))
            self._is_failing = True
            return False
        self._is_failing = False
        return True

    async def _send(self, entries: list[Entry]) -> None:
        """Write one batch. Raises BrokerError or Unreachable where the topic did not take it."""
        if self._producer_id < 0:
            self._producer_id, self._base_sequence = await self._broker.producer_ids.next(), 0
        records = [
            Record(-1, entry.time_ms, entry.source.encode(), entry.value, headers_of(entry)) for entry in entries
        ]
        batch = build_batch(records, producer_id=self._producer_id, producer_epoch=0, base_sequence=self._base_sequence)
        topic_id, index, peer = await self._place()
        topic = TopicProduceData(AUDIT_TOPIC, topic_id, [PartitionProduceData(index, memoryview(batch))])
        request = ProduceRequest(None, ALL_REPLICAS, WRITE_MS_MAX, [topic])
        answer = await peer.ask(request, ProduceResponse, timeout_ms=2 * WRITE_MS_MAX)
        result = answer.responses[0].partition_responses[0]
        code = ErrorCode(result.error_code)
        if code in NUMBERED_WRONGLY:
            self._producer_id = -1
        if code not in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
            raise BrokerError(code, result.error_message or code.name)
        self._base_sequence = (self._base_sequence + len(entries)) % SEQUENCE_MODULUS

    async def _place(self) -> tuple[bytes, int, Peer]:
        """Return the topic's id, this broker's partition, and a connection to its leader. Raises BrokerError."""
        metadata = self._broker.metadata
        if metadata.topics.get(AUDIT_TOPIC) is None:
            refused = await self._broker.topics.create([AUDIT_TOPIC])
            if AUDIT_TOPIC in refused:
                raise refused[AUDIT_TOPIC]
        topic = metadata.topics.get(AUDIT_TOPIC)
        if topic is None:
            raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{AUDIT_TOPIC} is not known here yet")
        index = self._broker.node_id % len(topic.partitions)
        leader = metadata.brokers.get(topic.partitions[index].leader)
        listener = self._broker.config.inter_broker_listener_name
        endpoint = None if leader is None or leader.fenced else leader.endpoints.get(listener)
        if endpoint is None:
            raise BrokerError(ErrorCode.LEADER_NOT_AVAILABLE, f"{AUDIT_TOPIC}-{index} has no leader")
        return topic.topic_id, index, self._connection((endpoint.host, endpoint.port))

    def _connection(self, address: tuple[str, int]) -> Peer:
        if self._peer is None or self._peer[0] != address:
            if self._peer is not None:
                self._peer[1].close()
            # By this name only may an internal topic be written to, as in Apache Kafka.
            self._peer = address, self._broker.peers.to(*address, client_id=ADMIN_CLIENT_ID)
        return self._peer[1]
