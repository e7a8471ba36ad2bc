"""The demo's audit trail: every broker of the example keeps one, and the demo fails where it does not tell of it."""

from pathlib import Path

import yaml

from kavka_audit.lake.ingest import Ingested
from kavka_audit.questions.query_runner import Table
from kavka_audit.run import Outcome
from kavka_demo.audited import audited, tells
from kavka_operator.api.files import load
from tests.tidy.tree import ROOT
from tests.unit.analytics.test_questions import held, trail_of, use
from tests.unit.analytics.trail import answers

QUICKSTART = ROOT / "examples" / "quickstart.yaml"


def test_the_example_gets_a_key_and_nothing_else(tmp_path: Path) -> None:
    file = audited(QUICKSTART, tmp_path)
    before, after = (list(yaml.safe_load_all(path.read_text())) for path in (QUICKSTART, file))
    config = after[0]["spec"]["config"]
    assert len(Path(config.pop("kavka.audit.key.file")).read_text()) == 64
    assert config.pop("kavka.audit.interval.ms") == 1_000
    assert after == before
    assert (tmp_path / "audit.key").stat().st_mode & 0o077 == 0


def test_the_changed_example_is_valid(tmp_path: Path) -> None:
    assert len(load([audited(QUICKSTART, tmp_path)])) == len(load([QUICKSTART]))


def outcome(tables: dict[str, Table]) -> Outcome:
    return Outcome(Ingested(), tables, "report.html")


def test_a_trail_that_does_not_tell_of_the_client_is_no_answer(tmp_path: Path) -> None:
    uses = use("a", "WRITE", "t"), use("b", "READ", "t")
    assert not tells(outcome(answers(tmp_path / "a", trail_of(*uses))), "app")
    told = outcome(answers(tmp_path / "b", trail_of(*uses, held(0))))
    assert tells(told, "app")
    assert not tells(told, "another")
