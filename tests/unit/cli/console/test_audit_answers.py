"""The answers of a run of the audit as the console shows them: the same questions in the same words."""

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer

from kavka_audit.lake.directory import Lake
from kavka_audit.lake.snapshot import Snapshot
from kavka_audit.questions.query_runner import Settings
from kavka_audit.report.answers import ORDER
from kavka_audit.run import Outcome, refresh
from kavka_cli.target import Target
from kavka_top.console import server as module
from kavka_top.console.audit_answers import AuditAnswers, NoSuchQuestionError, UnreadableAnswersError, answers_in
from kavka_top.console.server import Console
from tests.unit.analytics.test_lake import USE
from tests.unit.analytics.trail import CLUSTER, NOW_MS, At, Kept, chain_of
from tools.top_picture import Example


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Outcome]:
    directory = tmp_path_factory.mktemp("lake")
    trail = Kept()
    trail.write(0, chain_of(1, [At(USE), At(USE)])[1])
    return directory, refresh(Lake(directory), trail, Snapshot(CLUSTER, {}), Settings(NOW_MS), lambda _: None)


def test_each_question_has_the_answer_that_the_command_printed(ran: tuple[Path, Outcome]) -> None:
    directory, outcome = ran
    shown = answers_in(directory).all(("main", "audit"))
    (sheet,) = shown["sheets"]
    assert [row["key"] for row in sheet["rows"]] == list(ORDER)
    for row in sheet["rows"]:
        table = outcome.tables[row["key"]]
        texts = [cell["text"] for cell in row["cells"]]
        assert texts == [table.question.title, outcome.answer(row["key"]), f"{table.count:,}"]
        assert row["link"] == ["main", "audit", row["key"]]
    assert shown["facts"][0]["text"].endswith("Z")


def test_an_answer_has_its_rows_in_their_order(ran: tuple[Path, Outcome]) -> None:
    directory, outcome = ran
    table = outcome.tables["top_talkers"]
    assert table.count, "there is something to show"
    shown = answers_in(directory).one("top_talkers")
    (sheet,) = shown["sheets"]
    assert (shown["title"], len(sheet["rows"])) == (table.question.title, table.count)
    assert sheet["rows"][0]["cells"][0]["text"] == "1"
    assert {row["principal"] for row in table.dicts()} <= {
        cell["text"] for row in sheet["rows"] for cell in row["cells"]
    }
    assert sheet["note"] == table.question.explanation
    assert "Protocol" not in [column["title"] for column in sheet["columns"]]


@pytest.mark.parametrize("name", ["", "none", "../lake", "..%2f", "__init__"])
def test_what_is_no_question_is_refused(ran: tuple[Path, Outcome], name: str) -> None:
    with pytest.raises(NoSuchQuestionError):
        answers_in(ran[0]).one(name)


def test_a_directory_that_no_run_has_written_and_a_damaged_answer_are_told(
    ran: tuple[Path, Outcome], tmp_path: Path
) -> None:
    with pytest.raises(UnreadableAnswersError, match=r"has no lake\.json"):
        answers_in(tmp_path)
    (tmp_path / "lake.json").write_text("[]")
    with pytest.raises(UnreadableAnswersError, match=r"has no lake\.json"):
        answers_in(tmp_path)
    copy = tmp_path / "copy"
    shutil.copytree(ran[0], copy)
    (copy / "tables" / "top_talkers.parquet").write_bytes(b"PAR1")
    with pytest.raises(UnreadableAnswersError, match="cannot be read"):
        answers_in(copy).all(("main", "audit"))
    (copy / "tables" / "top_talkers.parquet").unlink()
    rows = answers_in(copy).all(("main", "audit"))["sheets"][0]["rows"]
    (row,) = [row for row in rows if row["key"] == "top_talkers"]
    assert (row["cells"][1]["text"], "link" in row) == ("not answered yet", False)


def test_the_page_shows_the_answers_of_its_own_cluster_alone(
    ran: tuple[Path, Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = {"main": CLUSTER, "other": "another"}
    monkeypatch.setattr(module, "_cluster_id", lambda target: ids[target.name])

    async def ask(answers: list[AuditAnswers], **query: str) -> tuple[int, Any]:
        targets = {name: Target(name, "127.0.0.1:1") for name in ids}
        console = Console(targets, 0.01, lambda _: Example(), "", answers=answers)
        async with TestClient(TestServer(console.application(), host="127.0.0.1")) as client:
            answer = await client.get("/audit", params=query)
            return answer.status, await answer.json() if answer.status == 200 else await answer.text()

    known = [answers_in(ran[0])]
    assert len(asyncio.run(ask(known, cluster="main"))[1]["sheets"][0]["rows"]) == len(ORDER)
    assert asyncio.run(ask(known, cluster="main", item="top_talkers"))[1]["title"] == "Who moves most?"
    assert asyncio.run(ask(known, cluster="main", item="none"))[0] == 404
    note = asyncio.run(ask(known, cluster="other"))[1]["sheets"][0]["note"]
    assert (CLUSTER in note, "whose id is another" in note) == (True, True)
    assert "--audit DIR" in asyncio.run(ask([], cluster="main"))[1]["sheets"][0]["note"]
