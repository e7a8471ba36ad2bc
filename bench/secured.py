"""TLS and logins: librdkafka produces and consumes over PLAINTEXT, SSL, and SASL_SSL with SCRAM, on both brokers.

Both have one listener of each kind, the same certificate (RSA of 2,048 bits) and the same user. The three take turns
within a repetition, so that what TLS costs is told by neighbours. What OpenSSL and the JVM agree on with librdkafka is
TLS 1.3 with AES-256-GCM.
"""

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Final

from bench import load, machine, processes, topics
from bench.brokers import Broker, Product
from bench.load import Load
from bench.measure import Measure
from bench.sections import Plan, Record, alternating, loaded

SECTION: Final = "tls"
USER, PASSWORD = "bench", "correct horse"
SCRAM: Final = "SCRAM-SHA-512"
PROTOCOLS: Final = {"PLAINTEXT": "PLAINTEXT", "TLS": "SSL", "LOGIN": "SASL_SSL"}
JAAS: Final = "org.apache.kafka.common.security.scram.ScramLoginModule required;"


def draw_certificates(directory: Path) -> None:
    """An authority, and a key with its certificate for 127.0.0.1."""
    directory.mkdir()
    (directory / "names").write_text("subjectAltName=IP:127.0.0.1\n")
    for line in (
        "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=authority -keyout ca.key -out ca.crt",
        "req -newkey rsa:2048 -nodes -subj /CN=broker -keyout broker.key -out broker.csr",
        "x509 -req -in broker.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 -out broker.crt -extfile names",
    ):
        subprocess.run(["openssl", *line.split()], cwd=directory, check=True, capture_output=True)
    parts = [(directory / name).read_text() for name in ("broker.key", "broker.crt")]
    (directory / "broker.pem").write_text("".join(parts))


class SecuredBroker(Broker):
    """A broker with a listener of each kind."""

    def __init__(self, product: Product, directory: Path, certificates: Path) -> None:
        super().__init__(product, directory)
        self.certificates = certificates
        self.ports = {"PLAINTEXT": self.port, "TLS": processes.free_port(), "LOGIN": processes.free_port()}

    def address(self, listener: str) -> str:
        return f"127.0.0.1:{self.ports[listener]}"

    def format(self) -> None:
        """Write the configuration and prepare the log directory, with the user in it."""
        self.write_configuration()
        path = self.directory / "server.properties"
        lines = [line for line in path.read_text().splitlines() if "listener" not in line]
        given = dict(line.split("=", 1) for line in lines)
        controller = given["controller.quorum.bootstrap.servers"]
        addresses = ",".join(f"{name}://{self.address(name)}" for name in PROTOCOLS)
        given |= {
            "listeners": f"{addresses},CONTROLLER://{controller}",
            "advertised.listeners": addresses,
            "inter.broker.listener.name": "PLAINTEXT",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": ",".join(
                f"{name}:{protocol}" for name, protocol in (PROTOCOLS | {"CONTROLLER": "PLAINTEXT"}).items()
            ),
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.certificates / "broker.pem"),
            "listener.name.login.sasl.enabled.mechanisms": SCRAM,
            f"listener.name.login.{SCRAM.lower()}.sasl.jaas.config": JAAS,
        }
        path.write_text("".join(f"{name}={text}\n" for name, text in given.items()))
        added = f"{SCRAM}=[name={USER},password={PASSWORD}]"
        processes.run([*self.product.format(self.directory), "--add-scram", added])

    def settings(self, listener: str) -> tuple[str, ...]:
        """How librdkafka speaks to a listener."""
        found = [f"security.protocol={PROTOCOLS[listener].lower()}"]
        if listener != "PLAINTEXT":
            found.append(f"ssl.ca.location={self.certificates / 'ca.crt'}")
        if listener == "LOGIN":
            found += [f"sasl.mechanisms={SCRAM}", f"sasl.username={USER}", f"sasl.password={PASSWORD}"]
        return tuple(found)


def take(products: Sequence[Product], directory: Path, plan: Plan, record: Record) -> None:
    """Every size: produce, then consume, over each kind of listener."""
    draw_certificates(directory / "certificates")
    with ExitStack() as stack:
        brokers = []
        for product in products:
            broker = SecuredBroker(product, directory / f"secured-{product.name}", directory / "certificates")
            broker.format()
            broker.start()
            stack.callback(broker.stop)
            brokers.append(broker)
            warm_up(broker, plan)
        for size_bytes in plan.sizes_bytes:
            produce(brokers, plan, size_bytes, record)
            consume(brokers, plan, size_bytes, record)


def warm_up(broker: SecuredBroker, plan: Plan) -> None:
    """What is measured, over each kind of listener: a JIT compiler learns."""
    for listener in PROTOCOLS:
        what = Load(load.RDKAFKA, 1000, 1, plan.records // 4, "all", broker.settings(listener))
        with topics.topic(broker.bootstrap, 1) as topic:
            load.produce(broker.address(listener), topic, what)
            load.consume(broker.address(listener), topic, what)


def loads(plan: Plan, size_bytes: int) -> Iterator[tuple[str, Load]]:
    """A load by its listener; how to speak to that is the broker's."""
    for listener in PROTOCOLS:
        yield listener, Load(load.RDKAFKA, size_bytes, 1, plan.amount(load.RDKAFKA, size_bytes), "all")


def produce(brokers: Sequence[SecuredBroker], plan: Plan, size_bytes: int, record: Record) -> None:
    for repetition in range(plan.repetitions):
        for listener, what in loads(plan, size_bytes):
            for broker in alternating(brokers, repetition):
                chosen = replace(what, settings=broker.settings(listener))
                with topics.topic(broker.bootstrap, 1) as topic, machine.Meter(broker.pid) as meter:
                    outcome = load.produce(broker.address(listener), topic, chosen)
                told = loaded(SECTION, broker, repetition, what, outcome, meter.cost)
                record(headed(told, "produce", listener, size_bytes))


def consume(brokers: Sequence[SecuredBroker], plan: Plan, size_bytes: int, record: Record) -> None:
    with ExitStack() as stack:
        filled = {}
        for broker in brokers:
            filled[broker.name] = stack.enter_context(topics.topic(broker.bootstrap, 1))
            _, what = next(loads(plan, size_bytes))
            load.produce(broker.bootstrap, filled[broker.name], what)
        for repetition in range(plan.repetitions):
            for listener, what in loads(plan, size_bytes):
                for broker in alternating(brokers, repetition):
                    chosen = replace(what, settings=broker.settings(listener))
                    with machine.Meter(broker.pid) as meter:
                        outcome = load.consume(broker.address(listener), filled[broker.name], chosen)
                    told = loaded(SECTION, broker, repetition, what, outcome, meter.cost)
                    record(headed(told, "consume", listener, size_bytes))


def headed(measure: Measure, what: str, listener: str, size_bytes: int) -> Measure:
    """With the kind of listener at the head of its row."""
    return replace(measure, case=f"{what} {size_bytes} B over {PROTOCOLS[listener]}")
