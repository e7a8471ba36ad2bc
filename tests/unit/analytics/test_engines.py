"""Which engine computes is checked before anything is asked."""

import pytest

from tests.unit.operator.person import run


def test_an_engine_that_is_not_installed_is_said_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kavka_audit_run.main.lacking", lacking_spark)
    code, said = run("audit", "run", "--bootstrap", "127.0.0.1:1", "--engine", "spark")
    assert code == 1
    assert "kavka audit run --engine spark needs more than is installed: pip install 'kavka[spark]'" in said


def lacking_spark(command: str, extra: str, *modules: str) -> str:
    assert modules == ("pyspark",)
    return f"{command} needs more than is installed: pip install 'kavka[{extra}]'"
