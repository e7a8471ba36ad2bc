"""A query of Spark that goes on has each record once, through a death of its run and one of the broker."""

import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pytest

from kavka_audit.delta.tables import is_there
from tests.conformance.analytics.conftest import JAVA, PLANS, produce
from tests.conformance.security.test_audit_run import table
from tests.support.servers import Server, free_port
from tests.support.waiting import until_outside
from tests.unit.analytics import delta
from tests.unit.operator.person import run
from tools.spark_home import settings

pytestmark = [pytest.mark.spark, pytest.mark.slow]

NAME = "kavka-audit"
RECORDS = 200
SECONDS_MAX = 400


@dataclass(slots=True)
class Live:
    """A run that goes on, in a process of its own."""

    words: list[str]
    log: Path
    env: dict[str, str]
    ui_port: int

    @contextmanager
    def running(self) -> Iterator["subprocess.Popen[bytes]"]:
        with self.log.open("ab") as log:
            process = subprocess.Popen(self.words, env=self.env, stdout=log, stderr=subprocess.STDOUT)
        try:
            yield process
        finally:
            process.kill()
            process.wait()


def live_over(server: Server, directory: Path, conf: Path) -> Live:
    ui_port = free_port()
    others = {
        "spark.master": "local[2]",
        "spark.driver.extraJavaOptions": JAVA,
        "spark.ui.enabled": "true",
        "spark.ui.port": str(ui_port),
        "spark.sql.streaming.metricsEnabled": "true",
        **PLANS,
    }
    env = {**os.environ, **settings(conf, others)}
    kavka = str(Path(sys.executable).with_name("kavka"))
    words = [kavka, "audit", "run", "--bootstrap", server.bootstrap, "--directory", str(directory)]
    more = ["--engine", "spark", "--table-format", "delta", "--processing-time", "1", "--every", "2"]
    return Live([*words, *more], conf.parent / "run.log", env, ui_port)


def asked(port: int, path: str) -> str:
    """What Spark's UI says."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=SECONDS_MAX) as answer:
        return str(answer.read().decode())


def records_of_writer(directory: Path) -> int:
    """The records that the events in the table tell of."""
    if not is_there(directory):
        return 0
    with duckdb.connect() as connection:
        from kavka_audit.delta.daily_tables import entries_of
        from kavka_audit.delta.tables import Tables

        rows = entries_of(connection, Tables(delta.lake_in(directory)))
        found = rows.filter("client_id = 'writer' AND operation = 'WRITE'").aggregate("sum(records)").fetchall()
    return int(found[0][0] or 0)


def test_each_record_is_there_once_though_the_run_and_the_broker_die(audited_broker: Server, tmp_path: Path) -> None:
    directory = tmp_path / "audit"
    live = live_over(audited_broker, directory, tmp_path / "conf")

    def until_there(records: int) -> None:
        words = f"{records} records, of which {records_of_writer(directory)} are there: {live.log.read_text()[-1500:]}"
        until_outside(lambda: records_of_writer(directory) == records, SECONDS_MAX, words)

    produce(audited_broker, RECORDS)
    with live.running() as first:
        until_there(RECORDS)
        until_outside((directory / "report.html").exists, SECONDS_MAX)  # the query that goes on begins
        produce(audited_broker, RECORDS)
        until_there(2 * RECORDS)
        assert f"spark.streaming.{NAME}.inputRate-total" in asked(live.ui_port, "/metrics/json")
        assert NAME in asked(live.ui_port, "/StreamingQuery/")
        produce(audited_broker, RECORDS)
        first.send_signal(signal.SIGKILL)  # wherever the query is
        first.wait()
    with live.running() as second:
        until_there(3 * RECORDS)
        until_outside(lambda: live.log.read_text().count("report.html\n") >= 2, SECONDS_MAX)
        audited_broker.kill()
        audited_broker.start()
        produce(audited_broker, RECORDS)
        until_there(4 * RECORDS)
        until_outside(lambda: answered(directory) == 4 * RECORDS, SECONDS_MAX)
        assert second.poll() is None, live.log.read_text()[-1500:]
        second.send_signal(signal.SIGTERM)
        assert second.wait(SECONDS_MAX) == 0

    words = (
        "--bootstrap",
        audited_broker.bootstrap,
        "--table-format",
        "delta",
        "--directory",
        str(tmp_path / "duckdb"),
    )
    code, said = run("audit", "run", *words)
    assert code == 0, said
    by_spark, by_duckdb = (delta.entries(delta.lake_in(place)) for place in (directory, tmp_path / "duckdb"))
    reached = {partition: max(row[1] for row in by_spark if row[0] == partition) for partition, *_ in by_spark}
    assert by_spark == [row for row in by_duckdb if row[1] <= reached.get(row[0], -1)]
    assert {state.verdict for state in delta.chains(delta.lake_in(directory)).values()} == {"sound"}


def answered(directory: Path) -> int:
    """The records of the last answer."""
    rows = [row for row in table(directory, "top_talkers") if row["client_id"] == "writer"]
    return sum(int(row["records"] or 0) for row in rows if row["operation"] == "WRITE")
