"""Every piece of code on the page `docs/how-to/broker-for-tests.md` runs."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from kavka_pytest.in_process import KafkaInProcess
from tests.support.programs import GO, RUN_SECONDS_MAX, node_modules, run
from tests.tidy.tree import ROOT
from tools.kafka_jars import class_path
from tools.kube.programs import BUILD_SECONDS_MAX
from tools.kube.programs import environment as go_environment

PAGE: Final = (ROOT / "docs/how-to/broker-for-tests.md").read_text(encoding="utf-8")
USES: Final = Path(__file__).with_name("page")

pytestmark = pytest.mark.slow


def pieces(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def environment(home: Path) -> dict[str, str]:
    """One in which `kavka` is the command of this installation, and begins with nothing."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    commands = f"{Path(sys.executable).parent}{os.pathsep}{kept['PATH']}"
    return {**kept, "PATH": commands, "XDG_STATE_HOME": str(home / "state")}


def nothing_is_left(home: Path) -> bool:
    return not list((home / "state").rglob("cluster.yaml"))


def test_the_languages_of_the_page_are_those_that_are_run() -> None:
    assert set(re.findall(r"^```(\w+)$", PAGE, re.MULTILINE)) == {"python", "sh", "json", "java", "go", "js"}
    assert [len(pieces(language)) for language in ("python", "sh", "json", "java", "go", "js")] == [6, 2, 1, 1, 1, 1]


def test_python(tmp_path: Path) -> None:
    with KafkaInProcess(tmp_path) as elsewhere:
        for number, piece in enumerate(pieces("python")):
            named = re.match(r"# (\w+\.py)\n", piece)
            name = f"test_{number}.py" if named is None else named[1]
            (tmp_path / name).write_text(piece.replace("localhost:9092", str(elsewhere)))
        words = ("-q", "-p", "no:cacheprovider", f"--basetemp={tmp_path / 'base'}", str(tmp_path))
        ran = subprocess.run(
            [sys.executable, "-m", "pytest", *words],
            cwd=tmp_path, env=environment(tmp_path), capture_output=True, text=True, check=False, timeout=600,
        )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "8 passed" in ran.stdout


def test_commands(tmp_path: Path) -> None:
    up, records = pieces("sh")
    shown = json.loads(*pieces("json"))
    process = subprocess.Popen(
        ["/bin/bash", "-c", f"exec {up}"], env=environment(tmp_path), stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        said = run(["/bin/bash", "-e", "-c", records], env=environment(tmp_path), cwd=tmp_path)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(RUN_SECONDS_MAX)
        process.stdout.close()
    assert json.loads(line).keys() == shown.keys()
    assert json.loads(said.splitlines()[-1])["value"] == "one"
    assert nothing_is_left(tmp_path)


@pytest.mark.java
def test_java(tmp_path: Path) -> None:
    (tmp_path / "Kavka.java").write_text(*pieces("java"))
    shutil.copy(USES / "Main.java", tmp_path)
    jars = f"{tmp_path}:{class_path()}"
    run(["javac", "-cp", jars, "-d", str(tmp_path), *map(str, tmp_path.glob("*.java"))])
    said = run(["java", "-XX:TieredStopAtLevel=1", "-cp", jars, "Main"], env=environment(tmp_path))
    assert said.splitlines()[-1] == "an order"
    assert nothing_is_left(tmp_path)


@pytest.mark.go
def test_go(tmp_path: Path) -> None:
    (tmp_path / "kavka_test.go").write_text(*pieces("go"))
    for path in (USES / "orders_test.go", GO / "go.mod", GO / "go.sum"):
        shutil.copy(path, tmp_path)
    ran = subprocess.run(
        ["go", "test", "-mod=mod", "-count=1", "."],
        cwd=tmp_path, env={**go_environment(), **environment(tmp_path)}, capture_output=True, text=True, check=False,
        timeout=BUILD_SECONDS_MAX,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert nothing_is_left(tmp_path)


@pytest.mark.node
def test_node(tmp_path: Path) -> None:
    (tmp_path / "kavka.mjs").write_text(*pieces("js"))
    shutil.copy(USES / "main.mjs", tmp_path)
    (tmp_path / "node_modules").symlink_to(node_modules())
    said = run(["node", str(tmp_path / "main.mjs")], env=environment(tmp_path))
    assert said.splitlines()[-1] == "an order"
    assert nothing_is_left(tmp_path)
