"""Executors of Spark that share no directory: they read and write the lake in a real S3 server, by TLS."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pytest

from kavka_audit.engine import DUCKDB, Engine
from kavka_audit.lake.directory import Lake
from kavka_audit.lake.ingest import Ingested
from kavka_audit.questions.query_runner import Settings, questions
from kavka_audit.store.address import address_of
from kavka_audit.store.lease import Lease
from kavka_audit.store.mirror import Mirror
from kavka_audit.store.s3 import S3
from tests.conformance.analytics.planted import Drawn, KeptSource
from tests.conformance.analytics.spark_frames import hadoop_settings, small_files
from tests.support.s3 import ACCESS_KEY, SECRET_KEY, S3Server, s3_server
from tests.support.secured import certificates
from tests.unit.analytics.trail import CLUSTER, NOW_MS, ROWS_MAX, Kept

pytestmark = [pytest.mark.spark, pytest.mark.s3, pytest.mark.slow, pytest.mark.extended]

FEW = {"audit_gaps", "top_talkers"}


@dataclass(frozen=True)
class Stored:
    """The server, and what a program is told to be let in."""

    server: S3Server
    environment: dict[str, str]

    def store(self, bucket: str) -> S3:
        return S3(address_of(f"s3://{bucket}/audit", self.environment), self.environment)

    def place(self, bucket: str) -> Path:
        return self.server.directory / bucket / "audit"


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stored]:
    directory = tmp_path_factory.mktemp("s3")
    signed = certificates(directory / "keys", "IP:127.0.0.1")
    with pytest.MonkeyPatch.context() as patch, s3_server(directory, signed=signed) as server:
        found = {**server.environment, "AWS_CA_BUNDLE": str(signed.directory / "ca.crt")}
        for name, value in found.items():
            patch.setenv(name, value)
        yield Stored(server, found)


@pytest.fixture
def few_at_once(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    small_files(monkeypatch, tasks_max=1)


@pytest.fixture(autouse=True)
def few_questions(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    few = [question for question in questions() if question.name in FEW]
    for module in ("kavka_audit.spark.engine", "kavka_audit.questions.query_runner"):
        monkeypatch.setattr(f"{module}.questions", lambda: few)


@pytest.fixture(autouse=True)
def let_in(spark: Any) -> Iterator[None]:
    """The Java of all tests here was started without credentials in its environment: it finds them elsewhere."""
    keys = {"aws.accessKeyId": ACCESS_KEY, "aws.secretAccessKey": SECRET_KEY}
    system = spark.sparkContext._jvm.java.lang.System
    for name, value in keys.items():
        system.setProperty(name, value)
    yield
    for name in (*keys, "javax.net.ssl.trustStore", "javax.net.ssl.trustStoreType"):
        system.clearProperty(name)


def run(store: S3, directory: Path, engine: Engine, kept: Kept, *, is_asked: bool = False) -> Ingested:
    """Take in what is new, and answer."""
    lake = Lake(directory, Mirror(store, "s3://lake", Lease(store, "s3://lake", "here")))
    with lake.held(CLUSTER):
        told = [*engine.ingest(lake, kept)]
        if is_asked:
            engine.ask(lake, Settings(NOW_MS), ROWS_MAX)
    return told[-1] if told else Ingested()


def rows(place: Path) -> list[tuple[object, ...]]:
    """The rows of the trail in a bucket, as one who knows nothing of it reads them."""
    files = [str(file) for file in place.glob("entries/*/*.parquet")]
    found = duckdb.read_parquet(files, union_by_name=True) if files else None
    return [] if found is None else found.order('partition, "offset"').fetchall()


def answer(place: Path, name: str) -> list[tuple[object, ...]]:
    return duckdb.read_parquet(str(place / "tables" / f"{name}.parquet")).fetchall()


def beside(place: Path) -> list[str]:
    """The names in a bucket that are not the lake's."""
    ours = ("entries", "tables", "lake.json", "lease.json", "snapshot", "counts")
    return [str(file) for file in place.iterdir() if file.name not in ours]


def test_both_engines_keep_the_same_rows_and_answers_and_one_goes_on_with_the_other(
    spark: Any, stored: Stored, tmp_path: Path
) -> None:
    from kavka_audit.spark.engine import SparkEngine
    from kavka_audit.spark.storage import CREDENTIALS, afar

    kept = Drawn(7).trail(150)
    for name in ("by-spark", "by-duckdb"):
        stored.server.bucket(name)
    ours, theirs = stored.store("by-spark"), stored.store("by-duckdb")
    known = hadoop_settings(spark)
    for name in CREDENTIALS:
        known.set(name, SECRET_KEY)  # as Spark does with what is in the environment
    taken = run(theirs, tmp_path / "duckdb", DUCKDB, kept, is_asked=True)
    address = address_of("s3://by-spark/audit", stored.environment)
    with afar(spark, address, ours, stored.environment) as ground:
        engine = SparkEngine(spark, KeptSource(kept), ground)
        assert run(ours, tmp_path / "spark", engine, kept, is_asked=True).records == taken.records
        assert SECRET_KEY not in spark._jsparkSession.sessionState().newHadoopConf().getValByRegex(".*").toString()
    assert SECRET_KEY not in spark.sparkContext.getConf().toDebugString()
    place = stored.place("by-spark")
    assert rows(place) == rows(stored.place("by-duckdb"))
    for name in FEW:
        assert answer(place, name) == answer(stored.place("by-duckdb"), name), name
    assert beside(place) == []
    sizes = {file.stat().st_size for file in (tmp_path / "spark" / "entries").rglob("*.parquet")}
    assert sizes == {0}, "the driver has their names alone"

    before = rows(place)
    kept.add(0, [], b"one more")
    assert run(ours, tmp_path / "spark", DUCKDB, kept, is_asked=True).records == 1
    assert len(rows(place)) == len(before) + 1
    assert {file.stat().st_size > 0 for file in (tmp_path / "spark" / "entries").rglob("*.parquet")} == {True}


class Died(Exception):
    """The run is ended here."""


class Dying(S3):
    """A store that a run is cut off from at one of its changes, before or behind it."""

    left, is_done = 0, False

    def _change(self, change: Any) -> None:
        self.left -= 1
        if self.left != 0 or self.is_done:
            change()
        if self.left == 0:
            raise Died

    def copy(self, key: str, place: str) -> None:
        self._change(lambda: S3.copy(self, key, place))

    def put(self, key: str, file: Path) -> None:
        self._change(lambda: S3.put(self, key, file))


@pytest.mark.usefixtures("small_files")
def test_a_run_that_dies_at_any_commit_leaves_nothing_twice_and_nothing_beside_the_lake(
    spark: Any, stored: Stored, tmp_path: Path
) -> None:
    from kavka_audit.spark.engine import SparkEngine
    from kavka_audit.spark.storage import afar

    kept = Drawn(3).trail(120)
    for name in ("whole", "dying"):
        stored.server.bucket(name)
    run(stored.store("whole"), tmp_path / "whole", DUCKDB, kept)
    address = address_of("s3://dying/audit", stored.environment)
    place, deaths = stored.place("dying"), 0
    with afar(spark, address, stored.store("dying"), stored.environment) as ground:
        while True:
            store = Dying(address, stored.environment)
            store.left, store.is_done = 2 + deaths % 2, deaths % 2 == 0
            try:
                run(store, tmp_path / f"work-{deaths}", SparkEngine(spark, KeptSource(kept), ground), kept)
                break
            except Died:
                deaths += 1
                places = [row[:2] for row in rows(place)]
                assert len(places) == len({*places})
    assert deaths >= 2
    assert rows(place) == rows(stored.place("whole"))
    assert beside(place) == []
