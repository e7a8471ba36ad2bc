"""Strangers come and go beside one client that is known: is the memory of the broker flat, and is that client let be?

One broker asks who its clients are, keeps an audit trail, and has a small quota for each client id. First the client
that is known is alone. Then strangers fill every cache that they can reach, and come and go (`strangers`). After a
while the memory of the process may not grow any more, however long they go on. The client that is known is slower by a
bound at most, and waits for no quota.
"""

import asyncio
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from confluent_kafka import KafkaError, Message, Producer, ThrottleEvent

from kavka_broker.core.authorization.settings import STANDARD
from kavka_broker.protocol.messages import alter_client_quotas_request as quotas
from kavka_broker.protocol.messages.alter_client_quotas_response import AlterClientQuotasResponse
from kavka_broker.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kavka_broker.protocol.messages.create_topics_response import CreateTopicsResponse
from kavka_broker.protocol.messages.sasl_authenticate_request import SaslAuthenticateRequest
from kavka_broker.protocol.messages.sasl_authenticate_response import SaslAuthenticateResponse
from kavka_broker.protocol.messages.sasl_handshake_request import SaslHandshakeRequest
from kavka_broker.protocol.messages.sasl_handshake_response import SaslHandshakeResponse
from tests.chaos.latencies import p99_ms
from tests.chaos.strangers import ADMIN, HOST, NOBODY, OPEN, SASL, SCRAM_USER, TLS, fill_caches, fill_quotas
from tests.support.asking import ask_on
from tests.support.secured import certificates
from tests.support.servers import Server, free_port, resident_bytes, start_kavka
from tests.support.wire import Connection

GROWTH_BYTES_MAX: Final = 20 * 1024 * 1024
"""How much more memory than after the warm-up the process may hold at any time."""
P99_TIMES_MAX: Final = 3.0
P99_MS_LEAST: Final = 250.0
"""What the p99 of the known client may be at least: machines with other work know no smaller one for sure."""
CALM_SECONDS: Final = 10.0
WARM_UP_SECONDS: Final = (20.0, 60.0)
SAMPLE_SECONDS: Final = 1.0
VALUES_A_SECOND: Final = 20
LOGIN_MS_MAX: Final = 3_000
FLUSH_SECONDS_MAX: Final = 60.0
TOPIC: Final = "known"
KNOWN: Final = ("known", "known-secret")
NODE: Final = ("node", "node-secret")
INSIDE, CONTROLLER = "INSIDE", "CONTROLLER"
MODULE: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"
#: Of each client id: more than the known client needs, and less than all strangers together.
LIMITS: Final = {"request_percentage": 3.0, "producer_byte_rate": 200_000.0}
MIB: Final = 1024 * 1024


@dataclass(slots=True)
class Report:
    """What the memory of the broker was, and what the known client felt."""

    minutes: float
    calm_p99_ms: float = 0.0
    p99_ms: float = 0.0
    acknowledged: int = 0
    throttled: int = 0
    begin_bytes: int = 0  # before the first stranger
    warm_bytes: int = 0  # after the warm-up
    resident_bytes: list[int] = field(default_factory=list)  # since then
    visits: dict[str, int] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)

    @property
    def growth_bytes(self) -> int:
        """How much more than after the warm-up it was at most."""
        return max(self.resident_bytes) - self.warm_bytes

    def judge(self) -> list[str]:
        """What is wrong; nothing where all is well."""
        found = list(self.failures)
        if self.growth_bytes > GROWTH_BYTES_MAX:
            found.append(f"memory grew by {self.growth_bytes / MIB:.1f} MiB; {GROWTH_BYTES_MAX // MIB} are allowed")
        if self.p99_ms > max(P99_MS_LEAST, P99_TIMES_MAX * self.calm_p99_ms):
            found.append(
                f"p99 of the known client {self.p99_ms:.0f} ms, and {self.calm_p99_ms:.0f} ms before strangers"
            )
        if self.throttled:
            found.append(f"the known client waited {self.throttled} times for a quota that others have used up")
        return found

    def text(self) -> str:
        """The lines that a person reads."""
        sizes = [size / MIB for size in self.resident_bytes]
        tenths = ", ".join(f"{sizes[(len(sizes) - 1) * number // 10]:.1f}" for number in range(11))
        visits = ", ".join(f"{name.replace('_', ' ')} {count:,}" for name, count in sorted(self.visits.items()))
        lines = [
            f"strangers for {self.minutes:g} min: {sum(self.visits.values()):,} connections ({visits})",
            f"memory in MiB: {self.begin_bytes / MIB:.1f} before them,",
            f"  {self.warm_bytes / MIB:.1f} after the warm-up, then {tenths}: {self.growth_bytes / MIB:+.1f} at most",
            f"the known client: p99 {self.p99_ms:.1f} ms, {self.calm_p99_ms:.1f} before strangers;",
            f"  {self.acknowledged:,} values acknowledged, throttled {self.throttled} times",
        ]
        return "\n".join([*lines, *(self.judge() or ["memory is flat, and the known client is within its bounds"])])


class KnownClient:
    """Produces a value now and then, as a user that is known, and notes how long each acknowledgement takes."""

    def __init__(self, port: int, client_id: str) -> None:
        self.seconds: list[float] = []
        self.throttled = 0
        self.failures: list[str] = []
        self._is_stopping = False
        self._producer = Producer(
            {
                "bootstrap.servers": f"{HOST}:{port}",
                "client.id": client_id,
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "PLAIN",
                "sasl.username": KNOWN[0],
                "sasl.password": KNOWN[1],
                "log_level": 0,
                "linger.ms": 0,
                "acks": "all",
                "throttle_cb": self._throttle,
            }
        )
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _throttle(self, event: ThrottleEvent) -> None:
        self.throttled += event.throttle_time > 0

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.failures.append(f"a value of the known client was not acknowledged: {error}")
        else:
            latency_seconds = message.latency()
            assert latency_seconds is not None, "it was produced"
            self.seconds.append(latency_seconds)

    def _run(self) -> None:
        while not self._is_stopping:
            self._producer.produce(TOPIC, bytes(1000), on_delivery=self._delivered)
            self._producer.poll(1 / VALUES_A_SECOND)
            time.sleep(1 / VALUES_A_SECOND)

    def forget(self) -> None:
        """Leave out what came before: it waited for connections and caches."""
        self.seconds.clear()

    def stop(self) -> None:
        """Stop, and wait for what is under way."""
        self._is_stopping = True
        self._thread.join()
        if left := self._producer.flush(FLUSH_SECONDS_MAX):
            self.failures.append(f"{left} values of the known client were never acknowledged")


def run(root: Path, minutes: float, say: Callable[[str], None]) -> Report:
    """Start a broker, send strangers, and measure for so long."""
    report = Report(minutes)
    ports = {name: free_port() for name in (OPEN, TLS, SASL, INSIDE, CONTROLLER, ADMIN)}
    scram = f"SCRAM-SHA-256=[name={SCRAM_USER},password={SCRAM_USER}]"
    server = start_kavka(root / "broker", settings(root, ports), formatting=["--add-scram", scram])
    try:
        with known_connection(ports[SASL]) as connection:
            create_topic(connection)
        measure(report, server, ports, say)
    finally:
        server.kill()
    return report


def measure(report: Report, server: Server, ports: Mapping[str, int], say: Callable[[str], None]) -> None:
    """Measure the known client alone, and then beside strangers, with the memory of the broker."""
    assert server.process is not None
    pid, warm_up = server.process.pid, min(max(WARM_UP_SECONDS[0], 12 * report.minutes), WARM_UP_SECONDS[1])
    with producing(report, ports[SASL], "calm") as known:
        time.sleep(CALM_SECONDS)
        known.forget()
        time.sleep(CALM_SECONDS)
        report.calm_p99_ms, report.begin_bytes = p99_ms(known.seconds), resident_bytes(pid)
    say(f"alone: p99 {report.calm_p99_ms:.1f} ms, {report.begin_bytes / MIB:.1f} MiB")
    asyncio.run(fill_caches(ports))
    with known_connection(ports[SASL]) as connection:
        limit_client_ids(connection)
    asyncio.run(fill_quotas(ports))
    say(f"every cache is full: {resident_bytes(pid) / MIB:.1f} MiB")
    measured = 60 * report.minutes
    command = [sys.executable, "-m", "tests.chaos.strangers", json.dumps(ports), str(warm_up + measured)]
    strangers = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        # A client id that the broker meets only now that strangers have used up what they may.
        with producing(report, ports[SASL], "new") as known:
            time.sleep(warm_up)
            known.forget()
            report.warm_bytes = resident_bytes(pid)
            say(f"warm: {report.warm_bytes / MIB:.1f} MiB")
            end = time.monotonic() + measured
            while time.monotonic() < end:
                time.sleep(SAMPLE_SECONDS)
                report.resident_bytes.append(resident_bytes(pid))
            report.p99_ms, report.acknowledged = p99_ms(known.seconds), len(known.seconds)
        report.visits = json.loads(strangers.communicate()[0])
    finally:
        strangers.kill()
        strangers.wait()


@contextmanager
def producing(report: Report, port: int, client_id: str) -> Iterator[KnownClient]:
    """A known client at work; at its end the report has what went wrong for it."""
    known = KnownClient(port, client_id)
    try:
        yield known
    finally:
        known.stop()
        report.throttled += known.throttled
        report.failures += known.failures


def settings(root: Path, ports: Mapping[str, int]) -> dict[str, str]:
    """A broker that asks who its clients are, and lets those that it does not know do nothing."""
    signed = certificates(root / "certificates", "DNS:localhost,IP:127.0.0.1")
    (root / "audit.key").write_text("00" * 32)
    protocols = {
        OPEN: "PLAINTEXT",
        TLS: "SSL",
        SASL: "SASL_PLAINTEXT",
        INSIDE: "SASL_PLAINTEXT",
        CONTROLLER: "SASL_PLAINTEXT",
    }
    users = " ".join(f'user_{user}="{password}"' for user, password in (KNOWN, NOBODY, NODE))
    own = f'username="{NODE[0]}" password="{NODE[1]}"'
    return {
        "listeners": ",".join(f"{name}://{HOST}:{ports[name]}" for name in protocols),
        "listener.security.protocol.map": ",".join(f"{name}:{kind}" for name, kind in protocols.items()),
        "controller.quorum.bootstrap.servers": f"{HOST}:{ports[CONTROLLER]}",
        "inter.broker.listener.name": INSIDE,
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "sasl.mechanism.controller.protocol": "PLAIN",
        "sasl.enabled.mechanisms": "PLAIN",
        f"listener.name.{SASL.lower()}.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
        **{
            f"listener.name.{name.lower()}.plain.sasl.jaas.config": f"{MODULE} required {own} {users};"
            for name in (SASL, INSIDE, CONTROLLER)
        },
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(signed.directory / "broker.pem"),
        "authorizer.class.name": STANDARD,
        "super.users": f"User:{KNOWN[0]};User:{NODE[0]}",
        "kavka.admin.listener": f"{HOST}:{ports[ADMIN]}",
        "kavka.audit.key.file": str(root / "audit.key"),
        "kavka.login.timeout.ms": str(LOGIN_MS_MAX),
        "log.retention.bytes": str(MIB),
        "log.segment.bytes": str(MIB),
    }


@contextmanager
def known_connection(port: int) -> Iterator[Connection]:
    """A connection of the user that is known."""
    with Connection((HOST, port)) as connection:
        ask_on(connection, SaslHandshakeRequest("PLAIN"), SaslHandshakeResponse)
        token = f"\0{KNOWN[0]}\0{KNOWN[1]}".encode()
        assert not ask_on(connection, SaslAuthenticateRequest(token), SaslAuthenticateResponse).error_code
        yield connection


def create_topic(connection: Connection) -> None:
    made = ask_on(connection, CreateTopicsRequest([CreatableTopic(TOPIC, 1, 1)]), CreateTopicsResponse)
    assert [topic.error_code for topic in made.topics] == [0]


def limit_client_ids(connection: Connection) -> None:
    """Give each client id a quota of its own."""
    limits = [quotas.OpData(key, value, False) for key, value in LIMITS.items()]
    entry = quotas.EntryData([quotas.EntityData("client-id", None)], limits)
    altered = ask_on(connection, quotas.AlterClientQuotasRequest([entry]), AlterClientQuotasResponse)
    assert [one.error_code for one in altered.entries] == [0]
