"""One broker in the test's own process: its loop is a thread, its records lie in a directory of the fixture.

It is the broker that `kavka up` runs, with its files, sockets and threads, less the process around it: no signals, no
log on standard error, and a failed assertion ends this broker alone and fails the fixture.
"""

import asyncio
import logging
import os
import shutil
import sys
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final, NoReturn
from uuid import uuid4

from kavka_broker.controller.format import FormatError, FormatOptions, format_directory
from kavka_broker.core.config.broker import BrokerConfig
from kavka_broker.core.config.definition import ConfigError
from kavka_broker.core.metadata.image.leader_hint import leader_of
from kavka_broker.logs import LOGGER_NAME
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.alter_client_quotas_request import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from kavka_broker.protocol.messages.create_topics_request import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kavka_broker.runtime.clock import SystemClock
from kavka_broker.runtime.environment import REAL
from kavka_broker.runtime.logs import KeyValues
from kavka_broker.runtime.process import failed_on_loop
from kavka_broker.runtime.server import Server, StartError
from kavka_broker.storage.disk import RealDisk
from kavka_pytest.brokers import Kafka, KafkaError, Leader
from kavka_pytest.full_disk import FillableDisk

NODE_ID: Final = 1
START_SECONDS_MAX: Final = 60.0
STOP_SECONDS_MAX: Final = 60.0
ANSWER_SECONDS_MAX: Final = 30.0
LOOK_SECONDS: Final = 0.002
QUOTAS: Final = {"producerByteRate": "producer_byte_rate", "consumerByteRate": "consumer_byte_rate"}
SETTINGS: Final = {
    "process.roles": "broker,controller",
    "node.id": str(NODE_ID),
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.voters": f"{NODE_ID}@127.0.0.1:9093",  # a quorum of one, which is never called
    "kavka.admin.listener": "127.0.0.1:0",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "4",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "4",
    "share.coordinator.state.topic.num.partitions": "4",
    "share.coordinator.state.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
}


class KafkaInProcess(Kafka):
    """A broker beside the test. `settings` are Kafka's, in place of those that the fixture has."""

    where = "in the test's own process"

    def __init__(self, directory: Path, settings: Mapping[str, str] | None = None) -> None:
        super().__init__(f"kafka in {directory.name}")
        self._directory = directory
        self._settings = dict(settings or {})
        self._cluster_id = urlsafe_b64encode(uuid4().bytes).decode().rstrip("=")
        self._ports = (0, 0)
        self._server: Server | None = None
        self._broken: list[BaseException] = []
        self._handler: logging.Handler | None = None
        self._disk = FillableDisk()
        self.faults.when_cleared(self._free_disk)

    @property
    def metrics(self) -> list[str]:
        return [f"http://127.0.0.1:{self._running.admin_port}/metrics"]

    @property
    def log(self) -> str:
        """The warnings and errors of the broker."""
        return self._log_file.read_text(errors="replace") if self._log_file.exists() else ""

    def leader(self, topic: str, partition: int = 0) -> int:
        return self.threads.run(_leader(self._running, topic, partition), ANSWER_SECONDS_MAX)

    def fill_disk(self, node: int | None = None, *, leader_of: Leader | None = None) -> int:
        """Leave the broker no room on its disk; see `Kafka`. Raises KafkaError where there is no such node."""
        node = self._node_of(node, leader_of)
        if node != NODE_ID:
            raise KafkaError(f"there is no node {node}; there is {NODE_ID}")
        self._disk.is_full = True
        return node

    def mend(self, node: int) -> None:
        super().mend(node)
        self._free_disk()

    def _free_disk(self) -> None:
        self._disk.is_full = False

    def restart(self) -> None:
        """Restart it by controlled shutdown. Raises KafkaError while its disk is full."""
        if self._disk.is_full:
            raise KafkaError("the broker's disk is full, and it would not start; mend() it first")
        self.threads.run(self._restart(self._running), START_SECONDS_MAX + STOP_SECONDS_MAX)

    @property
    def _running(self) -> Server:
        """The node. Raises KafkaError where it has stopped, or has broken."""
        if self._broken:
            raise KafkaError(f"the broker has broken: {self._broken[0]!r}") from self._broken[0]
        if self._server is None:
            raise KafkaError("the broker has been stopped")
        return self._server

    def _start(self) -> str:
        if sys.flags.optimize:
            raise KafkaError("the broker does not run without assertions: leave out python -O and PYTHONOPTIMIZE")
        self._listen_to_logs()
        try:
            self.threads.run(self._begin(), START_SECONDS_MAX)
        except (ConfigError, FormatError, StartError) as error:
            raise KafkaError(f"the broker cannot start: {error}") from error
        return f"127.0.0.1:{self._ports[0]}"

    def _stop(self) -> None:
        server, self._server = self._server, None
        try:
            if server is not None:
                self.threads.run(server.stop("the tests have ended"), STOP_SECONDS_MAX)
        finally:
            if self._handler is not None:
                logging.getLogger(LOGGER_NAME).removeHandler(self._handler)
                self._handler.close()
            shutil.rmtree(self._directory / "data", ignore_errors=True)
        if self._broken:
            raise KafkaError(f"the broker broke while the tests ran: {self._broken[0]!r}") from self._broken[0]

    def _create(self, name: str, partitions: int, config: dict[str, str]) -> None:
        configs = [CreatableTopicConfig(key, value) for key, value in config.items()]
        request = CreateTopicsRequest([CreatableTopic(name, partitions, -1, configs=configs)])
        self.threads.run(_decide(self._running, request, "topics"), ANSWER_SECONDS_MAX)
        for partition in range(partitions):
            self.leader(name, partition)

    def _limit(self, client_id: str, limits: dict[str, str | None]) -> None:
        from kavka_operator.api.quantity import parse  # half a second: only those pay that limit a client

        operations = [OpData(QUOTAS[key], float(parse(rate))) for key, rate in limits.items() if rate is not None]
        entry = EntryData([EntityData("client-id", client_id)], operations)
        self.threads.run(_decide(self._running, AlterClientQuotasRequest([entry]), "entries"), ANSWER_SECONDS_MAX)

    @property
    def _log_file(self) -> Path:
        return self._directory / "broker.log"

    def _listen_to_logs(self) -> None:
        """Keep the lines of this broker's threads, of the level that the process has: warnings by default."""
        handler = self._handler = logging.FileHandler(self._log_file, delay=True)
        handler.setFormatter(KeyValues())
        handler.addFilter(lambda record: (record.threadName or "").startswith(self.threads.name))
        logging.getLogger(LOGGER_NAME).addHandler(handler)

    # --- in the loop --------------------------------------------------------------------------------------------

    async def _begin(self) -> None:
        """Start the node, on the ports that it had before. Raises ConfigError, FormatError and StartError."""
        asyncio.get_running_loop().set_exception_handler(partial(failed_on_loop, self._break))
        own, controller = self._ports
        places = {
            "listeners": f"PLAINTEXT://127.0.0.1:{own},CONTROLLER://127.0.0.1:{controller}",
            "log.dirs": str(self._directory / "data"),
        }
        config = BrokerConfig.parse({**SETTINGS, **places, **self._settings})
        now_ms = SystemClock().now_ms()
        format_directory(
            RealDisk(),
            config,
            self._cluster_id,
            FormatOptions(ignore_formatted=True),
            now_ms=now_ms,
            random_bytes=os.urandom,
        )
        server = self._server = Server(config, self._break, replace(REAL, disk=self._disk))
        await server.start()
        self._ports = server.advertised[0].port, server.controllers[0].port

    async def _restart(self, server: Server) -> None:
        await server.stop("the test restarts it")
        await self._begin()

    def _break(self, error: BaseException) -> NoReturn:
        """Note that an invariant of the broker is violated. The process of a broker would end here."""
        self._broken.append(error)
        raise error


async def _decide(server: Server, request: Message, results: str) -> None:
    """Have the controller decide on a request. Raises KafkaError where it refuses."""
    answer = await server.node.of_controllers.ask(request)
    for result in getattr(answer, results):
        if result.error_code != ErrorCode.NONE:
            raise KafkaError(f"{ErrorCode(result.error_code).name}: {result.error_message or 'no reason given'}")


async def _leader(server: Server, topic: str, partition: int) -> int:
    """The leader, once there is one. Raises KafkaError for a partition that is not there."""
    while True:
        known = server.broker.metadata.topics.get(topic)
        if known is None or partition not in known.partitions:
            raise KafkaError(f"there is no partition {partition} of topic {topic}")
        node, _ = leader_of(topic, partition, server.broker.metadata)
        if node >= 0:
            return node
        await asyncio.sleep(LOOK_SECONDS)
