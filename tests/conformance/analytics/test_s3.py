"""`kavka audit run --directory s3://...` over a real broker, with a real S3 server: versitygw."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from confluent_kafka import Producer
from deltalake import DeltaTable

from kavka_audit.store.address import address_of
from kavka_audit.store.lease import KEY, Lease
from kavka_audit.store.objects import StoreError
from kavka_audit.store.s3 import S3
from kavka_top.console.audit_answers import answers_at
from tests.support.s3 import ACCESS_KEY, SECRET_KEY, S3Server, s3_server
from tests.support.secured import certificates
from tests.support.servers import Server, free_port, start_kavka
from tests.support.topics import create_topic
from tests.support.waiting import until_outside
from tests.unit.operator.person import run

pytestmark = [pytest.mark.s3, pytest.mark.slow]

RECORDS = 700
RUN_SECONDS_MAX = 120


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with s3_server(tmp_path_factory.mktemp("s3")) as found:
        yield found


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A broker with some use of a topic in its trail."""
    directory = tmp_path_factory.mktemp("broker")
    key = directory / "audit.key"
    key.write_text("0123456789abcdef" * 4)
    found = start_kavka(
        directory / "broker",
        {"kavka.audit.key.file": str(key), "kavka.audit.interval.ms": "1000", "num.partitions": "1"},
    )
    create_topic(found, "orders")
    producer = Producer({"bootstrap.servers": found.bootstrap, "client.id": "shop"})
    for number in range(RECORDS):
        producer.produce("orders", b"%d" % number)
    assert producer.flush(60) == 0
    # What was counted is told before the broker ends.
    found.stop()
    found.start()
    yield found
    found.kill()


@pytest.fixture(autouse=True)
def environment(s3: S3Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name, value in {**s3.environment, "XDG_CACHE_HOME": str(tmp_path / "cache")}.items():
        monkeypatch.setenv(name, value)


def words(server: Server, directory: str, *more: str) -> tuple[str, ...]:
    return ("audit", "run", "--bootstrap", server.bootstrap, "--directory", directory, *more)


def succeeds(server: Server, directory: str, *more: str) -> str:
    code, said = run(*words(server, directory, *more))
    assert code == 0, said
    assert SECRET_KEY not in said
    assert ACCESS_KEY not in said
    return said


def fails(server: Server, directory: str, *more: str) -> str:
    code, said = run(*words(server, directory, *more))
    assert code == 1, said
    assert SECRET_KEY not in said
    return said


Rows = list[tuple[object, ...]]


def rows(directory: Path) -> Rows:
    """The rows of the trail, by offset."""
    files = [str(file) for file in directory.glob("entries/*/*.parquet")]
    found = duckdb.read_parquet(files, union_by_name=True)
    return found.order('partition, "offset"').fetchall()


def moved(directory: Path) -> Rows:
    """What the client has written, by the answer."""
    found = duckdb.read_parquet(str(directory / "tables/top_talkers.parquet"))
    talkers = found.filter("topic = 'orders'").project("principal, operation, topic, records, bytes").fetchall()
    assert [row[3] for row in talkers] == [RECORDS]
    return talkers


def test_the_bucket_has_what_the_directory_has_from_run_to_run(server: Server, s3: S3Server, tmp_path: Path) -> None:
    bucket, local = s3.bucket("whole"), tmp_path / "local"
    succeeds(server, str(local))
    said = succeeds(server, "s3://whole/audit/main", "--work-directory", str(tmp_path / "a"))
    assert "s3://whole/audit/main/tables/top_talkers.parquet" in said
    assert said.endswith("s3://whole/audit/main/report.html\n")
    kept = bucket / "audit/main"
    count = len(rows(local))
    assert rows(kept)[:count] == rows(local)
    assert moved(kept) == moved(local)
    names = {file.relative_to(local).as_posix() for file in local.glob("[tlmrs]*/*.parquet")}
    assert names <= {file.relative_to(kept).as_posix() for file in kept.rglob("*")}
    assert (kept / "report.html").read_text().startswith("<!doctype html>")

    before = rows(kept)
    succeeds(server, "s3a://whole/audit/main", "--work-directory", str(tmp_path / "b"))
    after = rows(kept)
    assert after[: len(before)] == before
    places = [(row[0], row[1]) for row in after]
    assert len(places) == len({*places})
    assert moved(kept) == moved(local)
    assert rows(tmp_path / "b") == after, "an empty directory was given what the bucket has"
    assert not list(kept.rglob("*.part"))
    assert not json.loads((kept / "lease.json").read_text())["held"]


def in_tables(work: Path, kept: Path) -> Rows:
    """The rows of the trail in the Delta tables of a bucket, read from its objects."""
    files = [name for table in ("events", "dead_letters") for name in DeltaTable(kept / table).file_uris()]
    assert {*files} <= {str(file) for file in kept.rglob("*.parquet")}
    assert (work / "events").is_dir()
    found = duckdb.read_parquet(files, union_by_name=True, hive_partitioning=False)
    return found.project('partition, "offset", source, sequence, principal, operation, bytes').order("ALL").fetchall()


def test_delta_tables_stand_in_the_bucket_alone(server: Server, s3: S3Server, tmp_path: Path) -> None:
    """deltalake commits by the store's conditional puts, beside the lease; each run has an empty directory."""
    kept = s3.bucket("tables")
    options, a, b = ("--table-format", "delta"), tmp_path / "a", tmp_path / "b"
    said = succeeds(server, "s3://tables/main", *options, "--work-directory", str(a))
    assert said.endswith("s3://tables/main/report.html\n")
    before = in_tables(a, kept / "main")
    assert moved(kept / "main")
    succeeds(server, "s3://tables/main", *options, "--work-directory", str(b))
    after = in_tables(b, kept / "main")
    assert {*before} <= {*after}
    assert len({row[:2] for row in after}) == len(after) >= len(before) > 0
    verdicts = duckdb.read_parquet(DeltaTable(kept / "main/chains").file_uris()).project("verdict").fetchall()
    assert {*verdicts} == {("sound",)}
    assert not [*kept.glob("main/entries/*/*")]
    succeeds(server, "s3://tables/main", "--work-directory", str(tmp_path / "c"))
    assert {*after} <= {*in_tables(tmp_path / "c", kept / "main")}, "a run goes on with the format that is there"
    said = fails(server, "s3://tables/main", "--table-format", "parquet", "--work-directory", str(tmp_path / "c"))
    assert "has its tables in the format delta, and parquet is asked for" in said


def is_killed(server: Server, s3: S3Server, name: str) -> bool:
    """Kill a run in its middle; whether it still held the lake: on a busy machine it may be over before."""
    kept = s3.bucket(name)
    line = [sys.executable, "-m", "kavka_cli", *words(server, f"s3://{name}")]
    process = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=os.environ.copy())
    until_outside(lambda: list(kept.glob("snapshot/*.parquet")), RUN_SECONDS_MAX)
    process.send_signal(signal.SIGKILL)
    process.wait(RUN_SECONDS_MAX)
    return bool(json.loads((kept / "lease.json").read_text())["held"])


@pytest.mark.extended
def test_a_run_that_is_killed_is_gone_on_with_from_an_empty_directory(
    server: Server, s3: S3Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    name = next(name for name in ("killed", "killed-again", "killed-at-last") if is_killed(server, s3, name))
    kept = s3.directory / name
    before = rows(kept)
    assert before
    monkeypatch.setattr("kavka_audit.store.lease.LEASE_SECONDS", 1.0)
    succeeds(server, f"s3://{name}", "--work-directory", str(tmp_path / "work"))
    after = rows(kept)
    assert after[: len(before)] == before
    assert len({(row[0], row[1]) for row in after}) == len(after)
    moved(kept)


@pytest.mark.extended
def test_two_runs_at_once_are_refused(server: Server, s3: S3Server, tmp_path: Path) -> None:
    """The second sees the lease of the first change, which an object that is put again stands for."""
    kept = s3.bucket("twice")
    succeeds(server, "s3://twice")
    ours = json.loads((kept / "lease.json").read_text())
    held = '{"held": true, "host": "elsewhere"}'
    store = S3(address_of("s3://twice", os.environ))

    def renewed(_: float) -> None:
        (tmp_path / "lease").write_text(f"{held}{' ' * len(sleeps)}")
        store.put(KEY, tmp_path / "lease")
        sleeps.append(1)

    sleeps: list[int] = []
    renewed(0)
    words = "another run holds s3://twice \\(on elsewhere\\); wait for its end"
    with pytest.raises(StoreError, match=words), Lease(store, "s3://twice", "here", sleep=renewed).held():
        pass
    assert not ours["held"]


@pytest.mark.extended
def test_what_is_wrong_is_named(server: Server, s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    s3.bucket("refusing")
    said = fails(server, "s3://nowhere/audit")
    assert f"s3://nowhere/audit: reading lake.json: there is no bucket nowhere at {s3.endpoint}" in said
    away = f"http://127.0.0.1:{free_port()}"
    said = fails(server, "s3://refusing", "--s3-endpoint", away)
    assert f"{away} does not answer; put right --s3-endpoint or AWS_ENDPOINT_URL_S3" in said
    said = fails(server, "s3://refusing", "--s3-region", "eu-other-1")
    assert "another region than eu-other-1; name it in --s3-region" in said
    said = fails(server, "s3://refusing", "--s3-endpoint", f"http://{server.bootstrap}")
    assert "s3://refusing" in said
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "another")
    said = fails(server, "s3://refusing")
    assert "refuses the credentials (SignatureDoesNotMatch); put right AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY" in said
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "somebody")
    assert "refuses the credentials" in fails(server, "s3://refusing")


@pytest.mark.extended
def test_the_bucket_of_another_cluster_is_refused(server: Server, s3: S3Server) -> None:
    kept = s3.bucket("foreign")
    (kept / "lake.json").write_text('{"cluster_id": "AAAAAAAAAAAAAAAAAAAAAA"}')
    assert "s3://foreign holds the trail of cluster AAAAAAAAAAAAAAAAAAAAAA, and this is" in fails(
        server, "s3://foreign"
    )
    (kept / "lake.json").write_text("{}")
    assert "s3://foreign/lake.json is not what a run has written" in fails(server, "s3://foreign")


@pytest.mark.extended
def test_a_store_with_a_certificate_is_trusted_by_its_authority_alone(
    server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    signed = certificates(tmp_path / "ours", "IP:127.0.0.1")
    another = certificates(tmp_path / "theirs", "IP:127.0.0.1")
    with s3_server(tmp_path, signed=signed) as store:
        kept = store.bucket("secured")
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", store.endpoint)
        words = f"the certificate of {store.endpoint} is not trusted; name a file with that of its authority in"
        assert f"{words} AWS_CA_BUNDLE" in fails(server, "s3://secured")
        monkeypatch.setenv("AWS_CA_BUNDLE", str(another.directory / "ca.crt"))
        assert f"{words} AWS_CA_BUNDLE" in fails(server, "s3://secured")
        assert not list(kept.iterdir())
        monkeypatch.setenv("AWS_CA_BUNDLE", str(signed.directory / "ca.crt"))
        succeeds(server, "s3://secured")
        moved(kept)
        succeeds(server, "s3://secured/tables", "--table-format", "delta")
        moved(kept / "tables")


def test_the_console_shows_the_answers_that_are_in_the_store(s3: S3Server, server: Server) -> None:
    s3.bucket("shown")
    succeeds(server, "s3://shown/audit")
    with answers_at("s3://shown/audit") as answers:
        (sheet,) = answers.all(("main", "audit"))["sheets"]
        (row,) = [row for row in sheet["rows"] if row["key"] == "top_talkers"]
        assert "ANONYMOUS" in row["cells"][1]["text"]
        assert answers.one("top_talkers")["sheets"][0]["rows"]
        assert not [*answers.directory.glob("entries/**/*.parquet")], "the trail stays where it is"
    assert not answers.directory.exists()
    code, said = run("console", "--bootstrap", server.bootstrap, "--audit", "s3://shown/none")
    assert (code, "s3://shown/none is not a directory of `kavka audit run`" in said) == (1, True), said
    code, said = run("console", "--bootstrap", server.bootstrap, "--audit", "s3://no-such-bucket/none")
    assert (code, "there is no bucket no-such-bucket" in said, SECRET_KEY in said) == (1, True, False), said
