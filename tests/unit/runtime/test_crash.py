"""What is left of a failed assertion: an exit code, a report in the log, a line in a file that a start counts."""

import json
import logging
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn, cast

import pytest

from kavka_broker.core.config.broker import BrokerConfig
from kavka_broker.protocol.errors import InvariantViolation
from kavka_broker.runtime.crash import EXIT_CRASH, FILE_NAME, REPORTS_MAX, Crash


class Ended(BaseException):
    """What stands in for the end of the process."""


class Exits(list[int]):
    """The exit codes with which the process would have ended."""

    def __call__(self, code: int) -> NoReturn:
        self.append(code)
        raise Ended


@pytest.fixture
def exits() -> Exits:
    return Exits()


def config(directory: Path) -> BrokerConfig:
    return cast(BrokerConfig, SimpleNamespace(metadata_log_dir=str(directory), node_id=7))


def fail(crash: Crash, error: BaseException) -> None:
    with pytest.raises(Ended):
        try:
            raise error
        except Exception as caught:  # noqa: BLE001 - whatever it is
            crash(caught)


def lines(directory: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (directory / FILE_NAME).read_text().splitlines()]


def test_a_report_says_what_failed_and_where_and_of_whom(
    tmp_path: Path, exits: Exits, caplog: pytest.LogCaptureFixture
) -> None:
    crash = Crash(config(tmp_path), exits)
    crash.facts = lambda: {"epoch": 4}
    with caplog.at_level(logging.ERROR, "kavka"):
        fail(crash, InvariantViolation("offset 4 after 7"))
    assert exits == [EXIT_CRASH]
    (report,) = lines(tmp_path)
    assert report["what"] == "InvariantViolation: offset 4 after 7"
    assert report["where"].endswith(" fail")
    assert (report["node"], report["epoch"], report["failed_total"]) == (7, 4, 1)
    (line,) = caplog.records
    assert line.getMessage() == "broker.crashed"
    assert line.exc_info is not None
    said: dict[str, object] = line.fields  # type: ignore[attr-defined]
    assert said.items() <= report.items()


def test_an_assertion_without_words_is_told_by_its_line(tmp_path: Path) -> None:
    crash = Crash(config(tmp_path), Exits())
    fail(crash, AssertionError())
    assert lines(tmp_path)[0]["what"] == "AssertionError: raise error"


def test_the_next_start_counts_on_and_keeps_the_last_reports(tmp_path: Path) -> None:
    for number in range(REPORTS_MAX + 5):
        crash = Crash(config(tmp_path), Exits())
        assert crash.failed_total == number
        fail(crash, AssertionError(str(number)))
    assert Crash(config(tmp_path), Exits()).failed_total == REPORTS_MAX + 5
    assert [one["failed_total"] for one in lines(tmp_path)] == list(range(6, REPORTS_MAX + 6))


@pytest.mark.parametrize(
    ("text", "count"), [("", 0), ("no report\n", 1), ("[]\n", 1), ('{"failed_total": "x"}\n', 1), ("\x00", 1)]
)
def test_a_file_that_is_damaged_stops_no_start(tmp_path: Path, text: str, count: int) -> None:
    (tmp_path / FILE_NAME).write_text(text)
    assert Crash(config(tmp_path), Exits()).failed_total == count


def test_what_is_no_assertion_is_told_and_not_counted(tmp_path: Path, exits: Exits) -> None:
    fail(Crash(config(tmp_path), exits), OSError("every log directory has failed"))
    assert exits == [EXIT_CRASH]
    assert not (tmp_path / FILE_NAME).exists()


def test_the_process_ends_where_nothing_can_be_written_and_nothing_be_said(tmp_path: Path, exits: Exits) -> None:
    crash = Crash(config(tmp_path / "gone"), exits)
    crash.facts = lambda: cast(Any, 1 // 0)
    fail(crash, AssertionError("broken"))
    assert exits == [EXIT_CRASH]


def test_a_broker_refuses_to_run_without_assertions(tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    path.write_text(
        "process.roles=broker,controller\nnode.id=1\ncontroller.listener.names=C\n"
        "controller.quorum.bootstrap.servers=127.0.0.1:1\nlisteners=PLAINTEXT://127.0.0.1:0,C://127.0.0.1:0\n"
        f"listener.security.protocol.map=C:PLAINTEXT,PLAINTEXT:PLAINTEXT\nlog.dirs={tmp_path}\n"
    )
    command = [sys.executable, "-O", "-m", "kavka_broker", "run", "--config", str(path)]
    ran = subprocess.run(command, check=False, capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (
        2,
        "kavka-broker: does not run without assertions: leave out python -O and PYTHONOPTIMIZE\n",
    )
