"""`kavka-broker format` of a directory that was in use before: by an option, or by the environment of a container."""

from pathlib import Path

import pytest

from kavka_broker.cli import EXIT_USAGE, FORMATTED_BEFORE, main

CLUSTER_ID = "YS1jbHVzdGVyLWlkLTEyMw"


@pytest.fixture
def line(tmp_path: Path) -> list[str]:
    """The words that format one directory."""
    config = tmp_path / "server.properties"
    settings = [
        "process.roles=broker",
        "node.id=1",
        "listeners=PLAINTEXT://127.0.0.1:9092",
        f"log.dirs={tmp_path}/data",
    ]
    settings += ["controller.listener.names=CONTROLLER", "controller.quorum.bootstrap.servers=127.0.0.1:9093"]
    config.write_text("\n".join(settings))
    return ["format", "--config", str(config), "--cluster-id", CLUSTER_ID, "--ignore-formatted"]


def ended(line: list[str]) -> object:
    with pytest.raises(SystemExit) as left:
        main(line)
    return left.value.code


@pytest.mark.parametrize("is_told_by_environment", [False, True])
def test_it_is_left_if_it_holds_something_and_refused_if_not(
    line: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    is_told_by_environment: bool,
) -> None:
    data = f"{tmp_path}/data"
    if is_told_by_environment:
        monkeypatch.setenv(FORMATTED_BEFORE, data)
    told = [] if is_told_by_environment else ["--formatted-before", data]
    assert ended([*line, *told]) == EXIT_USAGE
    assert f"{data} was formatted before and has no meta.properties now" in capsys.readouterr().err
    monkeypatch.delenv(FORMATTED_BEFORE, raising=False)
    assert ended(line) == 0
    if is_told_by_environment:
        monkeypatch.setenv(FORMATTED_BEFORE, data)
    assert ended([*line, *told]) == 0
    assert f"left {data} as it is" in capsys.readouterr().out
