"""The analytics as users of Spark know programs: by spark-submit, in the catalog, and in a notebook."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kavka_audit.delta.daily_tables import refresh
from kavka_audit.delta.engine import DeltaDuckDB
from kavka_audit.engine import EngineError
from kavka_audit.lake.snapshot import Snapshot, keep
from kavka_audit.questions.query_runner import Settings
from tests.conformance.analytics.conftest import JAVA, PLANS, produce
from tests.conformance.analytics.planted import Drawn
from tests.conformance.analytics.test_spark_run import told
from tests.support.servers import Server
from tests.support.waiting import until_outside
from tests.unit.analytics.delta import lake_in
from tests.unit.analytics.trail import CLUSTER, NOW_MS

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ROOT = Path(__file__).parents[3]
PROGRAM = ROOT / "examples" / "spark" / "audit_run.py"
NOTEBOOK = ROOT / "examples" / "spark" / "audit.ipynb"
RECORDS = 100
RUN_SECONDS_MAX = 500


def test_spark_submit_runs_it_and_others_find_its_tables_in_the_catalog(audited_broker: Server, tmp_path: Path) -> None:
    """The catalog is Hive's, in a file, so that the second program finds what the first one has named."""
    from tools.spark_home import delta_jars, jars, spark_home

    listed = ",".join(str(jar) for found in (jars(), delta_jars()) for jar in sorted(found.glob("*.jar")))
    database = f"jdbc:derby:;databaseName={tmp_path / 'metastore'};create=true"
    conf = {
        "spark.sql.catalogImplementation": "hive",
        "spark.hadoop.javax.jdo.option.ConnectionURL": database,
        "spark.sql.warehouse.dir": str(tmp_path / "warehouse"),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": f"file://{tmp_path / 'log'}",
        "spark.driver.extraJavaOptions": f"{JAVA} -Dderby.system.home={tmp_path}",
        **PLANS,
    }
    (tmp_path / "log").mkdir()
    env = {name: value for name, value in os.environ.items() if name != "SPARK_CONF_DIR"}
    env |= {"PYTHONPATH": str(spark_home()), "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    submit = [str(spark_home() / "pyspark" / "bin" / "spark-submit"), "--master", "local[2]", "--jars", listed]
    submit += [word for name, value in conf.items() for word in ("--conf", f"{name}={value}")]

    def submitted(*words: str) -> str:
        ended = subprocess.run(
            [*submit, *words],
            capture_output=True,
            text=True,
            env=env,
            cwd=tmp_path,
            timeout=RUN_SECONDS_MAX,
            check=False,
        )
        assert ended.returncode == 0, ended.stdout[-2000:] + ended.stderr[-4000:]
        return ended.stdout

    run = ("--table-format", "delta", "--bootstrap", audited_broker.bootstrap, "--directory", str(tmp_path / "audit"))
    produce(audited_broker, RECORDS)
    until_outside(lambda: told(audited_broker) == RECORDS)
    said = submitted(str(PROGRAM), *run, "--catalog-schema", "audit")
    assert "records of the trail were new" in said
    reader = tmp_path / "reader.py"
    reader.write_text(
        "from pyspark.sql import SparkSession\n"
        "spark = SparkSession.builder.getOrCreate()\n"
        "rows = spark.sql(\"SELECT sum(records) FROM audit.use_daily WHERE client_id = 'writer'\").collect()\n"
        "print('records:', rows[0][0])\n"
        "print('tables:', *sorted(row.tableName for row in spark.sql('SHOW TABLES IN audit').collect()))\n"
    )
    said = submitted(str(reader))
    assert f"records: {RECORDS}\n" in said
    assert {"events", "dead_letters", "chains", "use_daily"} <= set(said.split("tables:")[1].split())
    log = b"".join(file.read_bytes() for file in (tmp_path / "log").rglob("*") if file.is_file())
    assert b"StreamingQueryListener$QueryProgressEvent" in log, "how far the query was, for Spark's history server"
    assert b'"name":"kavka-audit"' in log


def test_a_name_of_another_table_is_left_alone(spark: Any, tmp_path: Path) -> None:
    from kavka_audit.spark.catalog import register

    directories = [tmp_path / "one", tmp_path / "it's another"]
    for directory in directories:
        lake = lake_in(directory)
        with lake.held(CLUSTER):
            refresh(lake)
    register(spark, "of_test", directories[0], ["use_daily"])
    register(spark, "of_test", directories[0], ["use_daily"])
    try:
        with pytest.raises(EngineError, match=r"of_test\.use_daily is a table of Spark's catalog already"):
            register(spark, "of_test", directories[1], ["use_daily"])
        register(spark, "of_test", directories[1], ["traffic_daily"])
        assert spark.sql("SELECT count(*) FROM of_test.traffic_daily").collect()[0][0] == 0
    finally:
        spark.sql("DROP SCHEMA of_test CASCADE")
    assert (directories[0] / "use_daily" / "_delta_log").is_dir()


def test_the_notebook_runs(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lake, trail = lake_in(tmp_path), Drawn(5).trail(60)
    with lake.held(CLUSTER):
        list(DeltaDuckDB().ingest(lake, trail))
        keep(lake, Snapshot(CLUSTER, {}))
        answers = DeltaDuckDB().ask(lake, Settings(NOW_MS), 1000)
    monkeypatch.setenv("AUDIT_DIRECTORY", str(tmp_path))
    names: dict[str, Any] = {}
    for cell in cells("code"):
        exec(compile(cell, NOTEBOOK.name, "exec"), names)
    assert "verdict" in capsys.readouterr().out
    rows = answers["top_talkers"].dicts()
    moved = {
        (row["principal"], row["operation"]): sum(
            other["bytes"]
            for other in rows
            if (other["principal"], other["operation"]) == (row["principal"], row["operation"])
        )
        for row in rows
    }
    assert {(row.principal, row.operation): row.bytes for row in names["by_principal"].collect()} == moved
    assert moved


def cells(kind: str) -> list[str]:
    """The cells of the notebook; none has been run, so that nothing of another machine is in it."""
    found = json.loads(NOTEBOOK.read_text())["cells"]
    assert all(not cell.get("outputs") for cell in found)
    return ["".join(cell["source"]) for cell in found if cell["cell_type"] == kind]
