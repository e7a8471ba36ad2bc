"""The audit trail of this node: once a second, what happened to clients goes to the audit topic.

The node writes as a producer does, to the leader of its partition and with numbered batches, so that a batch that is
sent again is not written twice and none overtakes another. Where the topic takes none, events wait in the journal; by
its policy it counts what it has no room for, or clients are refused before anything happens
(`request/audit_backpressure`).
"""

import asyncio
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Final

from kavka_broker.core.audit.buffer import Journal, Policy
from kavka_broker.core.audit.chain import Chain, Entry, Kind
from kavka_broker.core.audit.changes import transaction_aborted
from kavka_broker.core.audit.cloud_events import headers_of
from kavka_broker.core.audit.events import Lifecycle
from kavka_broker.core.audit.keys import KeyProblemError, SigningKey, signing_key
from kavka_broker.core.audit.ocsf import BROKER
from kavka_broker.core.config.broker import BrokerConfig
from kavka_broker.core.config.definition import ConfigError
from kavka_broker.core.metadata.image.topic_names import AUDIT_TOPIC
from kavka_broker.logs import get
from kavka_broker.membership.topic_creation import TopicMaker
from kavka_broker.peers import Peer, Unreachable
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.init_producer_id_request import InitProducerIdRequest
from kavka_broker.protocol.messages.init_producer_id_response import InitProducerIdResponse
from kavka_broker.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kavka_broker.protocol.messages.produce_response import ProduceResponse
from kavka_broker.protocol.records.compression import Compression
from kavka_broker.protocol.records.record import Record, build_batch
from kavka_broker.request.broker import Broker
from kavka_broker.request.produce_policy import ADMIN_CLIENT_ID
from kavka_broker.runtime.audit_ends import KeptEnds
from kavka_broker.storage.disk import Disk

log = get("audit")

KEY_FILE: Final = "kavka.audit.key.file"
WINDOW_MS: Final = 1_000
WRITE_MS_MAX: Final = 10_000
STOP_MS_MAX: Final = 5_000
ALL_REPLICAS: Final = -1
GZIP_LEVEL: Final = 1
"""A batch of 50 events takes half a millisecond, and a ninth of its bytes are left."""
SEQUENCE_MODULUS: Final = 1 << 31
NUMBERED_WRONGLY: Final = frozenset(
    {ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.UNKNOWN_PRODUCER_ID, ErrorCode.INVALID_PRODUCER_EPOCH}
)


def key_of(config: BrokerConfig) -> SigningKey | None:
    """Return the key that signs the heads of chains; None where no trail is kept. Raises ConfigError."""
    name = config["kavka.audit.key.file"]
    if not name:
        return None
    try:
        return signing_key(Path(name).read_bytes())
    except OSError as problem:
        raise ConfigError(KEY_FILE, f"{name} cannot be read: {problem.strerror}") from problem
    except KeyProblemError as problem:
        raise ConfigError(KEY_FILE, f"{name} {problem}") from None


class Auditing:
    """Writes the audit trail of one node from its start to its stop."""

    def __init__(self, broker: Broker, key: SigningKey, disk: Disk) -> None:
        self.written_total = 0
        self.failures_total = 0
        self.last_written_ms: int | None = None
        self.journal: Journal | None = None  # from `begin` on
        self._broker = broker
        self._key = key
        self._ends = KeptEnds(disk, broker.config.metadata_log_dir)
        self._policy = Policy(broker.config["kavka.audit.failure.policy"])
        is_broker = broker.serving is not None
        self._topics = broker.topics if is_broker else TopicMaker(broker.config, broker.channel, broker.quorum)
        self._unsent: list[Entry] = []
        self._task: asyncio.Task[None] | None = None
        self._peer: tuple[tuple[str, int], Peer] | None = None  # the leader of the partition
        self._producer_id = -1
        self._base_sequence = 0
        self._is_failing = False  # which has been logged
        # A broker counts before it serves anybody, and where nothing may be lost it serves nobody after it has counted.
        broker.is_refusing = self._policy is Policy.REJECT and is_broker

    @property
    def is_refusing(self) -> bool:
        """Whether requests are refused for lack of room."""
        return self._broker.is_refusing

    @property
    def refused(self) -> Mapping[str, int]:
        """Return how many requests were refused, by what they ask for."""
        return self._broker.refused

    def begin(self) -> None:
        """Begin a chain, named by this registration of the broker or start of the controller, and count from now on."""
        broker = self._broker
        if broker.serving is not None:
            start = str(broker.lifecycle.broker_epoch)
        else:
            start = broker.as_controller.controller.incarnation_id.hex()
        chain = Chain(f"{broker.node_id}-{start}", self._key, self._ends.ends, broker.cluster_id)
        now_ms = broker.clock.now_ms()
        interval_ms, held_max = broker.config["kavka.audit.interval.ms"], broker.config["kavka.audit.buffer.events"]
        self.journal = Journal(chain, now_ms, interval_ms, self._policy, held_max)
        broker.audit, broker.use = self.journal.window, self.journal.use
        broker.journal = self.journal
        broker.is_refusing = False
        self.journal.window.note(self._lifecycle("START"))
        if broker.serving is not None:
            broker.transactions.on_timeout = self._note_timeout

    def _note_timeout(self, transactional_id: str) -> None:
        if self._broker.audit is not None:
            change = transaction_aborted(transactional_id, "timeout")
            self._broker.audit.changed(f"{BROKER}:{self._broker.node_id}", "", "", change)

    def start(self) -> None:
        """Write from now on."""
        assert self.journal is not None, "it has begun"
        self._task = asyncio.create_task(self._run(self.journal), name="audit")

    def _lifecycle(self, operation: str) -> Lifecycle:
        return Lifecycle(operation, str(self._broker.node_id), version("kavka-broker"))

    async def stop(self) -> None:
        """End the chain: write what waits, what requests under way change, and the last head, where that takes place in
        time.
        """
        assert self._task is not None
        assert self.journal is not None
        self.journal.window.note(self._lifecycle("STOP"))
        self._broker.audit = self._broker.use = self._broker.journal = None
        self._broker.is_refusing = self._policy is Policy.REJECT
        self._broker.is_trail_over = True
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        try:
            async with asyncio.timeout(STOP_MS_MAX / 1000):
                # Shielded: a change that takes longer than a stop may is decided all the same.
                await asyncio.gather(*map(asyncio.shield, self._broker.under_way), return_exceptions=True)
                while True:
                    if await self._write(self.journal, is_last=True):
                        break
                    await asyncio.sleep(WINDOW_MS / 1000)
        except TimeoutError:
            log.error("audit.not_ended", topic=AUDIT_TOPIC, lost=self.journal.held)
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
            await self._write_all(journal, is_last=is_last)
        except (BrokerError, Unreachable) as problem:
            self.failures_total += 1
            if not self._is_failing:
                log.warning("audit.not_written", topic=AUDIT_TOPIC, waiting=journal.waiting, reason=str(problem))
            self._is_failing = True
        else:
            self._is_failing = False
        if not is_last:
            self._refuse(journal)
        return not self._is_failing

    async def _write_all(self, journal: Journal, *, is_last: bool) -> None:
        """Write batch by batch. Raises BrokerError or Unreachable where the topic did not take one."""
        while True:
            now_ms = self._broker.clock.now_ms()
            self._unsent = self._unsent or journal.batch(now_ms, is_last=is_last)
            if not self._unsent:
                break
            await self._ends.sending(self._unsent[-1])
            await self._send(self._unsent)
            self._ends.taken(self._unsent[-1])
            journal.written()
            self.last_written_ms = self._broker.clock.now_ms()
            self.written_total += sum(entry.kind is Kind.EVENT for entry in self._unsent)
            is_ended, self._unsent = self._unsent[-1].kind is Kind.END, []
            if is_ended:
                await self._ends.ended()
                break

    def _refuse(self, journal: Journal) -> None:
        """Refuse what is to be told while there is no room for it, and only then."""
        if journal.is_full and not self._broker.is_refusing:
            log.error("audit.filled", topic=AUDIT_TOPIC, policy=self._policy, held=journal.held)
        elif not journal.is_full and self._broker.is_refusing:
            log.warning("audit.drained", topic=AUDIT_TOPIC)
        self._broker.is_refusing = journal.is_full

    async def _send(self, entries: list[Entry]) -> None:
        """Write one batch. Raises BrokerError or Unreachable where the topic did not take it."""
        topic_id, index, peer = await self._place()
        if self._producer_id < 0:
            self._producer_id, self._base_sequence = await self._new_producer_id(peer), 0
        records = [
            Record(-1, entry.time_ms, entry.source.encode(), entry.value, headers_of(entry)) for entry in entries
        ]
        # Events are alike. Of the codecs this one is read by every client without another package.
        batch = build_batch(
            records,
            compression=Compression.GZIP,
            compression_level=GZIP_LEVEL,
            producer_id=self._producer_id,
            producer_epoch=0,
            base_sequence=self._base_sequence,
        )
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

    async def _new_producer_id(self, peer: Peer) -> int:
        """Return an id that no producer has had; a controller asks a broker. Raises BrokerError and Unreachable."""
        if self._broker.serving is not None:
            return await self._broker.producer_ids.next()
        answer = await peer.ask(
            InitProducerIdRequest(None, WRITE_MS_MAX), InitProducerIdResponse, timeout_ms=WRITE_MS_MAX
        )
        if answer.error_code:
            raise BrokerError(ErrorCode(answer.error_code))
        return answer.producer_id

    async def _place(self) -> tuple[bytes, int, Peer]:
        """Return the topic's id, this node's partition, and a connection to its leader. Raises BrokerError."""
        metadata = self._broker.metadata
        if metadata.topics.get(AUDIT_TOPIC) is None:
            refused = await self._topics.create([AUDIT_TOPIC])
            if AUDIT_TOPIC in refused:
                raise refused[AUDIT_TOPIC]
        topic = metadata.topics.get(AUDIT_TOPIC)
        if topic is None:
            raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{AUDIT_TOPIC} is not known here yet")
        index = self._broker.node_id % len(topic.partitions)
        leader = metadata.brokers.get(topic.partitions[index].leader)
        listener = self._broker.config.listeners.inter_broker_name
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
