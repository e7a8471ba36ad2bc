"""The pieces of the local platform that need no broker: the store, the table, the lock, the probe, processes."""

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest
import yaml

from kavka_operator.api.files import load
from kavka_operator.api.kinds import key_of
from kavka_operator.api.printer_columns import age, find, table
from kavka_operator.api.topic import Topic
from kavka_operator.platform.local import child_process, probe, processes
from kavka_operator.platform.local.files import Lock, write_secret, write_whole
from kavka_operator.platform.local.layout import Layout, clusters
from kavka_operator.platform.local.signals import Signals, Stopped
from kavka_operator.platform.local.store import Store
from tests.support.servers import free_port
from tests.support.waiting import until_outside
from tests.unit.operator.fakes import NOW

FILE = """
apiVersion: kavka.dev/v1alpha1
kind: KafkaCluster
metadata: {name: main}
spec: {nodePools: [{name: nodes}]}
---
apiVersion: kavka.dev/v1alpha1
kind: Topic
metadata: {name: orders, annotations: {note: hello}}
spec: {clusterRef: {name: main}, partitions: 3}
"""
SLEEPER = [sys.executable, "-c", "import time; time.sleep(600)"]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    layout = Layout.of(tmp_path, "default", "main")
    layout.make()
    return Store(layout)


def declared(store: Store, text: str = FILE) -> list[object]:
    path = store.layout.root / "given.yaml"
    path.write_text(text)
    return list(load([path]))


def apply(store: Store, text: str = FILE) -> dict[str, str]:
    return {edit.key[2]: edit.change for edit in store.apply(declared(store, text), NOW)}  # type: ignore[arg-type]


def test_only_pid_files_of_nodes_are_taken_for_such(store: Store) -> None:
    names = ["node-0.pid", "node-12.pid", "node-notes.pid", "node-.pid", "node-1.pid.old", "node-\u0661.pid"]
    for name in names:
        (store.layout.root / name).write_text("1\n")
    assert [number for number, _ in store.layout.pids()] == [0, 12]


def test_the_store_gives_what_an_api_server_would(store: Store) -> None:
    assert apply(store) == {"main": "created", "orders": "created"}
    assert apply(store) == {"main": "unchanged", "orders": "unchanged"}
    before = store.all()[1]
    assert (before.metadata.generation, before.metadata.annotations) == (1, {"note": "hello"})
    assert apply(store, FILE.replace("partitions: 3", "partitions: 4"))["orders"] == "configured"
    after = store.all()[1]
    assert (after.metadata.generation, after.metadata.uid) == (2, before.metadata.uid)
    assert after.metadata.creation_timestamp == before.metadata.creation_timestamp == NOW


def test_an_annotation_is_a_change_but_no_new_generation(store: Store) -> None:
    apply(store)
    assert apply(store, FILE.replace("hello", "bye"))["orders"] == "configured"
    assert store.all()[1].metadata.generation == 1


def test_an_annotation_that_asks_the_operator_for_something_is_waited_for_as_a_change_is(store: Store) -> None:
    apply(store)
    approving = FILE.replace("note: hello", "note: hello, kavka.dev/forget-topic-id: id-1")
    assert apply(store, approving)["orders"] == "configured"
    assert store.all()[1].metadata.generation == 2
    assert apply(store, approving)["orders"] == "unchanged"


def test_what_is_annotated_and_let_go_again_is_as_its_file_says(store: Store) -> None:
    """`kavka hold` and `kavka release`: an empty map of annotations would be a difference that `kavka diff` shows."""
    apply(store)
    key = ("KafkaCluster", "default", "main")
    for value in ("", None):
        assert store.annotate(key, {"kavka.dev/hold": value})
    assert apply(store) == {"main": "unchanged", "orders": "unchanged"}


def test_statuses_are_written_only_when_they_say_something_new(store: Store) -> None:
    apply(store)
    made = store.all()[1]
    assert isinstance(made, Topic)
    status = made.status.replaced({"topic_id": "x", "partitions": 3})
    stamp = store.stamp()
    assert store.set_status(made, status)
    assert not store.set_status(store.all()[1], status)
    assert store.all()[1].status == status
    assert store.stamp() == stamp, "a status is no change of what is wanted"


def test_files_that_are_the_same_are_not_read_again(store: Store) -> None:
    apply(store)
    first = store.all()
    assert all(one is other for one, other in zip(first, store.all(), strict=True))
    made = first[1]
    assert isinstance(made, Topic)
    store.set_status(made, made.status.replaced({"partitions": 3}))
    again = store.all()
    assert (again[0] is first[0], again[1].status != made.status) == (True, True)
    apply(store, FILE.replace("partitions: 3", "partitions: 4"))
    assert store.all()[1].metadata.generation == 2


def test_deleted_resources_wait_until_they_are_let_go(store: Store) -> None:
    apply(store)
    made = store.all()[1]
    stamp = store.stamp()
    store.mark_deleted(key_of(made), NOW)
    assert store.stamp() != stamp
    assert store.all()[1].metadata.deletion_timestamp == NOW
    store.remove(key_of(made))
    assert [each.name for each in store.all()] == ["main"]


def test_clusters_are_found_again(store: Store, tmp_path: Path) -> None:
    assert list(clusters(tmp_path)) == [store.layout]


def test_times_in_a_spec_are_kept_as_text(store: Store) -> None:
    override = "{from: 2026-11-21T13:00:00Z, until: 2026-11-22T13:00:00Z, limits: {producerByteRate: 5}, reason: x}"
    text = f"""{FILE}
---
apiVersion: kavka.dev/v1alpha1
kind: ClientQuota
metadata: {{name: etl}}
spec:
  clusterRef: {{name: main}}
  entity: {{user: {{default: true}}}}
  limits: {{producerByteRate: 1}}
  overrides: [{override}]
"""
    assert apply(store, text)["etl"] == "created"
    assert apply(store, text)["etl"] == "unchanged"


def test_a_table_looks_as_kubectl_prints_it() -> None:
    document = {
        "metadata": {"name": "orders", "creationTimestamp": (NOW - timedelta(minutes=3)).isoformat()},
        "spec": {"clusterRef": {"name": "main"}},
        "status": {"partitions": 3, "conditions": [{"type": "Ready", "status": "True", "reason": "Ready"}]},
    }
    assert table(Topic, [document], NOW, wide=False) == (
        "NAME     CLUSTER   PARTITIONS   REPLICAS   READY   REASON   AGE\n"
        "orders   main      3                       True    Ready    3m"
    )


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (119, "119s"), (121, "2m1s"), (600, "10m"), (7200, "2h"), (200_000, "2d"), (-5, "0s")],
)
def test_an_age_is_shown_in_its_largest_unit(seconds: int, text: str) -> None:
    assert age((NOW - timedelta(seconds=seconds)).isoformat(), NOW) == text


def test_paths_that_lead_nowhere_find_nothing() -> None:
    assert find(".a.b", {"a": None}) is None
    assert find('.a[?(@.type=="x")].y', {"a": [{"type": "z"}]}) is None


def test_a_lock_is_held_by_one(tmp_path: Path) -> None:
    first, second = Lock(tmp_path / "lock"), Lock(tmp_path / "lock")
    assert not second.is_held_elsewhere()
    assert first.take()
    assert not second.take()
    assert second.is_held_elsewhere()
    first.release()
    assert second.take()
    second.release()


def test_files_are_replaced_as_a_whole(tmp_path: Path) -> None:
    write_whole(tmp_path / "a", "one")
    write_whole(tmp_path / "a", "two")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("a", "two")]


@pytest.mark.parametrize("write", [write_whole, write_secret])
def test_no_draft_stays_of_a_file_that_cannot_be_written(write: Callable[[Path, str], None], tmp_path: Path) -> None:
    (tmp_path / "directory").mkdir()
    with pytest.raises(IsADirectoryError):
        write(tmp_path / "directory", "hunter2")
    with pytest.raises(UnicodeEncodeError):
        write(tmp_path / "a", "hunter2 \ud800")
    assert [path.name for path in tmp_path.iterdir()] == ["directory"]


def test_a_new_secret_replaces_none(tmp_path: Path) -> None:
    write_secret(tmp_path / "a", "one", is_new=True)
    with pytest.raises(FileExistsError):
        write_secret(tmp_path / "a", "two", is_new=True)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("a", "one")]


def test_a_secret_is_utf_8_whatever_the_locale(tmp_path: Path) -> None:
    code = (
        "import sys; from kavka_operator.platform.local.files import *; write_secret(Path(sys.argv[1]), 'h\\xfcnter')"
    )
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    subprocess.run([sys.executable, "-c", code, tmp_path / "a"], env=environment, check=True)
    assert (tmp_path / "a").read_bytes() == "h\xfcnter".encode()


@contextmanager
def listening(answer: bytes) -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(64)
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        yield server.getsockname()[1]
        thread.join()


@pytest.mark.parametrize(
    ("answer", "good"),
    [
        (b"\0\0\0\x0a" + b"kavk" + b"\0\0" + b"\0\0\0\0", True),
        (b"\0\0\0\x0a" + b"kavk" + b"\0\x23" + b"\0\0\0\0", False),
        (b"\0\0\0\x0a" + b"else" + b"\0\0" + b"\0\0\0\0", False),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", False),
        (b"\0\0", False),
        (b"", False),
    ],
)
def test_only_the_answer_of_a_broker_counts(answer: bytes, good: bool) -> None:
    with listening(answer) as port:
        assert probe.answers("127.0.0.1", port, timeout_seconds=60.0) == good


def test_a_port_on_which_no_server_listens() -> None:
    port = free_port()  # which no connection of another program takes meanwhile
    with socket.create_server(("127.0.0.1", port)):
        assert probe.port_is_taken("127.0.0.1", port)
    assert not probe.answers("127.0.0.1", port)
    assert not probe.port_is_taken("127.0.0.1", port)


def test_another_process_with_our_pid_is_not_stopped() -> None:
    stranger = subprocess.Popen(SLEEPER)
    try:
        until_outside(lambda: "time.sleep" in processes.command_line(stranger.pid))
        assert not processes.stop_known(stranger.pid, ["kavka_broker", "run"], 5.0)
        assert stranger.poll() is None
        assert processes.stop_known(stranger.pid, ["time.sleep"], 5.0)
        assert stranger.wait(60) < 0
    finally:
        stranger.kill()
        stranger.wait()


def test_a_process_that_is_gone_is_not_stopped() -> None:
    done = subprocess.Popen([sys.executable, "-c", ""])
    done.wait()
    assert not processes.stop_known(done.pid, [""], 1.0)


def test_a_child_that_does_not_want_to_end_is_ended(tmp_path: Path) -> None:
    log = tmp_path / "log"
    code = "import signal, time; signal.signal(15, signal.SIG_IGN); print('deaf', flush=True); time.sleep(600)"
    child = processes.start([sys.executable, "-c", code], log)
    until_outside(lambda: b"deaf" in log.read_bytes())
    processes.stop_children([child], 0.2)
    assert child.returncode == -9


def test_a_log_that_is_too_long_is_put_aside(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("x" * 11)
    processes.start([sys.executable, "-c", "print('new')"], log, log_bytes_max=10).wait(60)
    assert (log.read_text(), (tmp_path / "log.1").read_text()) == ("new\n", "x" * 11)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends children with their parent")
def test_a_leashed_process_dies_with_its_parent(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    code = (
        "import subprocess, sys, os, time\n"
        f"tied = [sys.executable, '-I', '-S', {child_process.__file__!r}, str(os.getpid()), *{SLEEPER!r}]\n"
        "child = subprocess.Popen(tied)\n"
        f"open({str(pid_file)!r}, 'w').write(str(child.pid))\n"
        "time.sleep(600)\n"
    )
    holder = subprocess.Popen([sys.executable, "-c", code])
    try:
        until_outside(lambda: pid_file.exists() and pid_file.read_text() != "")
        pid = int(pid_file.read_text())
        until_outside(
            lambda: "time.sleep(600)" in processes.command_line(pid) and "leash" not in processes.command_line(pid)
        )
    finally:
        holder.kill()
        holder.wait()
    until_outside(lambda: "time.sleep" not in processes.command_line(pid))


def test_a_signal_becomes_an_exception() -> None:
    with Signals(), pytest.raises(Stopped, match="SIGTERM"):
        signal.raise_signal(signal.SIGTERM)


def test_a_signal_waits_for_the_end_of_a_held_block() -> None:
    steps = []

    def guarded(signals: Signals) -> None:
        with signals.held():
            signal.raise_signal(signal.SIGINT)
            steps.append("inside")
        steps.append("outside")

    with Signals() as signals, pytest.raises(Stopped, match="SIGINT"):
        guarded(signals)
    assert steps == ["inside"]


def test_documents_are_what_get_prints(store: Store) -> None:
    apply(store)
    documents = store.documents()
    assert [key[0] for key in documents] == ["KafkaCluster", "Topic"]
    assert yaml.safe_load(yaml.safe_dump(documents["Topic", "default", "orders"]))["spec"]["partitions"] == 3
