"""The wheels of `make package` in an environment without a work tree: what a user has after `pip install`."""

import json
import signal
import subprocess
import zipfile
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer

from tests.operator.local.installation import environment, install
from tools.package import build

NAMES = {"kavka", "kavka_audit", "kavka_broker", "kavka_cli", "kavka_operator"}


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return build(tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def installed(archives: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with an environment `venv`, where the wheels are, and nothing else."""
    directory = tmp_path_factory.mktemp("home")
    install(archives, directory)
    return directory


def kavka(installed: Path, *words: str) -> list[str]:
    """The command line of the installed command."""
    return [str(installed / "venv" / "bin" / "kavka"), *words]


def printed(installed: Path, *words: str) -> str:
    """The output of the installed command, which has to succeed."""
    done = subprocess.run(
        kavka(installed, *words), cwd=installed, env=environment(installed), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_each_archive_carries_the_licence(archives: list[Path]) -> None:
    assert {archive.name.partition("-0")[0] for archive in archives} == NAMES
    for wheel in (archive for archive in archives if archive.suffix == ".whl"):
        with zipfile.ZipFile(wheel) as content:
            names = content.namelist()
            (metadata,) = (name for name in names if name.endswith(".dist-info/METADATA"))
            assert "License-Expression: Apache-2.0" in content.read(metadata).decode()
        assert {name.rpartition("/")[2] for name in names} >= {"LICENSE", "NOTICE"}, wheel.name


def test_nothing_of_the_work_tree_is_imported(installed: Path) -> None:
    lines = "import kavka_broker, kavka_operator, kavka_cli, kavka_demo.main; print(kavka_broker.__file__)"
    python = str(installed / "venv" / "bin" / "python")
    found = subprocess.run([python, "-c", lines], cwd=installed, capture_output=True, text=True, check=True).stdout
    assert found.startswith(str(installed))


def test_examples_and_completion_come_with_it(installed: Path) -> None:
    listed = printed(installed, "example")
    assert listed.startswith("EXAMPLE")
    assert "quickstart" in listed
    (installed / "cluster.yaml").write_text(printed(installed, "example", "quickstart"))
    assert "created" in printed(installed, "apply", "-f", "cluster.yaml", "--dry-run")
    assert "_shtab_kavka" in printed(installed, "completion", "bash")


def test_one_line_starts_a_broker_that_a_client_uses(installed: Path) -> None:
    words = kavka(installed, "up", "--ephemeral", "--port", "0", "-o", "json")
    with subprocess.Popen(
        words, cwd=installed, env=environment(installed), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        try:
            bootstrap = json.loads(process.stdout.readline())["bootstrapServers"]
            producer = Producer({"bootstrap.servers": bootstrap})
            producer.produce("flights", key="AF", value=b"CDG", headers={"by": b"test"})
            assert producer.flush(60) == 0
            reader = Consumer({"bootstrap.servers": bootstrap, "group.id": "g", "auto.offset.reset": "earliest"})
            reader.subscribe(["flights"])
            (message,) = reader.consume(1, 60)
            assert (message.key(), message.value(), message.headers()) == (b"AF", b"CDG", [("by", b"test")])
            reader.close()
        finally:
            process.send_signal(signal.SIGTERM)
    assert process.returncode == 0
