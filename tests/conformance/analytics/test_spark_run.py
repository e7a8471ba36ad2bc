"""`kavka audit run --engine spark` over a real broker: by SCRAM over TLS with the least rights."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pytest
from confluent_kafka import Producer

from kavka_broker.protocol.records.batch import split_batches
from kavka_broker.protocol.records.record import read_records
from kavka_broker.request.produce_policy import ADMIN_CLIENT_ID
from tests.conformance.analytics.conftest import produce
from tests.conformance.security.test_audit import KEY, TOPIC
from tests.conformance.security.test_audit_run import table
from tests.conformance.security.test_scram import MODULE
from tests.support.programs import kafka_tool
from tests.support.secured import Certificates, certificates
from tests.support.servers import Server, free_port, start_kavka
from tests.support.topics import create_topic
from tests.support.waiting import until_outside
from tests.unit.analytics import delta
from tests.unit.operator.person import run

pytestmark = [pytest.mark.spark, pytest.mark.java, pytest.mark.slow]

USER, PASSWORD = "auditor", 'to "read" it'
RUN_SECONDS_MAX = 300
RECORDS = 500
PROTOCOLS = {"PLAINTEXT": "PLAINTEXT", "SASL": "SASL_SSL", "CONTROLLER": "PLAINTEXT"}
FOREIGN = 3


@dataclass(frozen=True, slots=True)
class Audited:
    """A broker with a trail, and a listener that asks who its clients are."""

    server: Server
    keys: Certificates
    port: int

    def config(self, directory: Path, password: str = PASSWORD) -> Path:
        """The file of `--command-config`."""
        file = directory / "client.properties"
        quoted = password.replace('"', '\\\\"')
        file.write_text(
            "security.protocol=SASL_SSL\nsasl.mechanism=SCRAM-SHA-512\n"
            f'sasl.jaas.config={MODULE} required username="{USER}" password="{quoted}";\n'
            f"ssl.truststore.type=PEM\nssl.truststore.location={self.keys.directory / 'ca.crt'}\n"
        )
        return file


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Audited]:
    """The broker, with some use of a topic in its trail, and some records that are no entries."""
    directory = tmp_path_factory.mktemp("audited")
    keys, ports = certificates(directory / "keys"), {name: free_port() for name in PROTOCOLS}
    hosts = {name: "localhost" if "SSL" in kind else "127.0.0.1" for name, kind in PROTOCOLS.items()}
    (directory / "audit.key").write_bytes(KEY.secret + b"\n")
    settings = {
        "listeners": ",".join(f"{name}://{hosts[name]}:{port}" for name, port in ports.items()),
        "listener.security.protocol.map": ",".join(f"{name}:{kind}" for name, kind in PROTOCOLS.items()),
        "controller.quorum.bootstrap.servers": f"127.0.0.1:{ports['CONTROLLER']}",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(keys.directory / "broker.pem"),
        "sasl.enabled.mechanisms": "SCRAM-SHA-512",
        "listener.name.sasl.scram-sha-512.sasl.jaas.config": f"{MODULE} required;",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
        "kavka.audit.key.file": str(directory / "audit.key"),
        "kavka.audit.interval.ms": "1000",
        "num.partitions": "2",
    }
    server = start_kavka(directory / "broker", settings)
    allow(server)
    create_topic(server, "orders")
    produce(server, RECORDS)
    until_outside(lambda: told(server) == RECORDS)
    spoil(server, FOREIGN)
    yield Audited(server, keys, ports["SASL"])
    server.kill()


def allow(server: Server) -> None:
    """Give the user a password, and what the how-to page says that it needs."""
    address = ("--bootstrap-server", server.bootstrap)
    entity = ("--entity-type", "users", "--entity-name", USER)
    kafka_tool("configs", *address, "--alter", *entity, "--add-config", f"SCRAM-SHA-512=[password={PASSWORD}]")
    allowed = ("--add", "--allow-principal", f"User:{USER}", "--operation")
    kafka_tool("acls", *address, *allowed, "Read", "--operation", "Describe", "--topic", TOPIC)
    kafka_tool("acls", *address, *allowed, "Read", "--group", "kavka-audit")
    kafka_tool("acls", *address, *allowed, "Describe", "--operation", "DescribeConfigs", "--topic", "*")
    kafka_tool("acls", *address, *allowed, "Describe", "--operation", "DescribeConfigs", "--cluster")


def told(server: Server) -> int:
    """The written records that the trail tells of so far: those of a second have an entry of their own."""
    logs = [log.read_bytes() for log in server.data.glob(f"{TOPIC}-*/*.log")]
    batches = (batch for found in logs for _, batch in split_batches(found))
    values = b"".join(record.value or b"" for batch in batches for record in read_records(batch))
    return sum(map(int, re.findall(rb'"records":(\d+)', values)))


def spoil(server: Server, records: int) -> None:
    """Write records that are no entries, as nobody but a node may."""
    producer = Producer({"bootstrap.servers": server.bootstrap, "client.id": ADMIN_CLIENT_ID})
    for number in range(records):
        producer.produce(TOPIC, b"\xff", partition=0, headers=[("ce_type", b"%d" % number)])
    assert producer.flush(60) == 0


def entries(directory: Path, condition: str) -> list[Any]:
    """Rows of the lake, as one who knows nothing of it reads them."""
    found = duckdb.read_parquet(str(directory / "entries" / "*" / "*.parquet"), union_by_name=True)
    return sorted(found.filter(condition).fetchall(), key=lambda row: row[:2])


@pytest.mark.usefixtures("as_delivered")
def test_a_user_with_the_least_rights_runs_it_over_tls(audited: Audited, tmp_path: Path) -> None:
    words = ("--bootstrap", f"localhost:{audited.port}", "--command-config", str(audited.config(tmp_path)))
    directories = {name: tmp_path / name for name in ("spark", "duckdb")}
    for name, directory in directories.items():
        code, said = run("audit", "run", *words, "--engine", name, "--directory", str(directory))
        assert code == 0, said
        assert "not told" not in said
        assert f"{FOREIGN} are no entries, 0 were missed" in said
        assert f"\n{directory}/report.html\n" in said
        assert PASSWORD not in said
    (written,) = [row for row in table(directories["spark"], "top_talkers") if row["client_id"] == "writer"]
    assert (written["principal"], written["records"]) == ("User:ANONYMOUS", RECORDS)
    # The trail goes on between the runs, by their own logins at least.
    reached = {partition: offset for partition, offset, *_ in entries(directories["spark"], "true")}
    both = [
        [row for row in entries(directory, "true") if row[1] <= reached.get(row[0], -1)]
        for directory in directories.values()
    ]
    assert both[0] == both[1]
    assert len(both[0]) > FOREIGN

    code, said = run("audit", "run", *words, "--engine", "spark", "--directory", str(directories["duckdb"]))
    assert code == 0, said
    offsets = [row[:2] for row in entries(directories["duckdb"], "true")]
    assert len(offsets) == len(set(offsets)) > len(both[0])


@pytest.mark.usefixtures("as_delivered")
def test_both_engines_write_the_same_delta_tables(audited: Audited, tmp_path: Path) -> None:
    words = ("--bootstrap", f"localhost:{audited.port}", "--command-config", str(audited.config(tmp_path)))
    directories = {name: tmp_path / name for name in ("spark", "duckdb")}
    for name, directory in directories.items():
        more = ("--engine", name, "--directory", str(directory), "--table-format", "delta")
        code, said = run("audit", "run", *words, *more)
        assert code == 0, said
        assert f"{FOREIGN} are no entries, 0 were missed" in said
    (written,) = [row for row in table(directories["spark"], "top_talkers") if row["client_id"] == "writer"]
    assert written["records"] == RECORDS
    found = {name: delta.entries(delta.lake_in(directory)) for name, directory in directories.items()}
    # The trail goes on between the runs, by their own logins at least.
    reached = {row[0]: max(other[1] for other in found["spark"] if other[0] == row[0]) for row in found["spark"]}
    assert found["spark"] == [row for row in found["duckdb"] if row[1] <= reached.get(row[0], -1)]
    assert len(found["spark"]) > FOREIGN
    for directory in directories.values():
        assert {state.verdict for state in delta.chains(delta.lake_in(directory)).values()} == {"sound"}

    for name, other in (("spark", "duckdb"), ("duckdb", "spark")):
        more = ("--engine", name, "--directory", str(directories[other]), "--table-format", "delta")
        code, said = run("audit", "run", *words, *more)
        assert code == 0, said
        offsets = [row[:2] for row in delta.entries(delta.lake_in(directories[other]))]
        assert len(offsets) == len(set(offsets)) > len(found[other])


def run_apart(*words: str) -> tuple[int, str]:
    """Run a command in a process, and with a session, of its own: one session keeps consumers by group and partition,
    and takes none with other settings than the tests before had.
    """
    from tools.spark_home import spark_home

    line = [str(Path(sys.executable).with_name("kavka")), *words]
    env = {**os.environ, "PYTHONPATH": str(spark_home())}
    ended = subprocess.run(line, capture_output=True, text=True, check=False, env=env, timeout=RUN_SECONDS_MAX)
    return ended.returncode, ended.stdout


@pytest.mark.usefixtures("spark")
def test_its_chains_are_as_sound_by_spark(audited: Audited, tmp_path: Path) -> None:
    key = tmp_path / "audit.key"
    key.write_bytes(KEY.secret + b"\n")
    words = ("audit", "verify", "--bootstrap", audited.server.bootstrap, "--key-file", str(key))
    by_engine = [run(*words, "--engine", "python"), run_apart(*words, "--engine", "spark")]
    assert [code for code, _ in by_engine] == [1, 1], "records are no entries"
    by_python, by_spark = ([line.partition(", ") for line in said.splitlines()] for _, said in by_engine)
    assert by_spark[:FOREIGN] == by_python[:FOREIGN]
    assert all(" no entry of a trail: ce_type: " in line for line, *_ in by_spark[:FOREIGN])
    # The trail goes on between the two: the numbers of entries differ, and the states and the damages do not.
    found = [[line.rsplit(maxsplit=2)[0] for line, *_ in lines[FOREIGN:]] for lines in (by_python, by_spark)]
    assert found[0] == found[1]
    assert all(line.endswith(": sound:") for line in found[0])


def test_a_wrong_password_is_one_line(spark: Any, audited: Audited, tmp_path: Path) -> None:
    config = audited.config(tmp_path, "wrong")
    words = ("--bootstrap", f"localhost:{audited.port}", "--command-config", str(config))
    code, said = run("audit", "run", *words, "--engine", "spark", "--directory", str(tmp_path / "lake"))
    assert code == 1
    assert said.startswith("error: ")
    assert said.count("\n") == 1
    assert not (tmp_path / "lake").exists()
