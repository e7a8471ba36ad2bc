"""Which tests `make check` runs after a change: those that import what has changed, and all where nobody can tell."""

import subprocess
from pathlib import Path

import pytest

from tools.affected import affected, changed_files, chosen

FILES = {
    "broker/kavka_broker/__init__.py": "",
    "broker/kavka_broker/core/__init__.py": "",
    "broker/kavka_broker/core/rule.py": "LIMIT = 3\n",
    "broker/kavka_broker/core/other.py": "import asyncio\n",
    "broker/kavka_broker/shell.py": """\
def run():
    from kavka_broker.core import (
        other,  # for x
        rule,
    )
""",
    "broker/kavka_broker/registry.py": "import pkgutil\n\nFOUND = pkgutil.iter_modules([])\n",
    "operator/kavka_operator/plan.py": "import json, kavka_operator.words as words\n",
    "operator/kavka_operator/words.py": "",
    "tests/support/help.py": "from kavka_broker.shell import run\n",
    "tests/unit/test_rule.py": "from kavka_broker.core.rule import LIMIT\n",
    "tests/unit/test_other.py": "import kavka_broker.core.other\n",
    "tests/unit/test_shell.py": "from tests.support.help import run\n",
    "tests/unit/test_registry.py": "from kavka_broker.registry import FOUND\n",
    "tests/property/test_plan.py": "from kavka_operator import plan\n",
    "tests/unit/test_command.py": "import sys\n\nPYTHON = sys.executable\n",
    "tests/conformance/test_rule.py": "from kavka_broker.core.rule import LIMIT\n",
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


BY_NAME_AND_AS_PROCESS = {"unit/test_registry.py", "unit/test_command.py"}


@pytest.mark.parametrize(
    ("changed", "found"),
    [
        ("broker/kavka_broker/core/rule.py", {"unit/test_rule.py", "unit/test_shell.py", *BY_NAME_AND_AS_PROCESS}),
        ("broker/kavka_broker/core/other.py", {"unit/test_other.py", "unit/test_shell.py", *BY_NAME_AND_AS_PROCESS}),
        ("broker/kavka_broker/core/gone.py", BY_NAME_AND_AS_PROCESS),
        ("broker/kavka_broker/core/__init__.py",
         {"unit/test_rule.py", "unit/test_other.py", "unit/test_shell.py", *BY_NAME_AND_AS_PROCESS}),
        ("operator/kavka_operator/words.py", {"property/test_plan.py", "unit/test_command.py"}),
        ("tests/support/help.py", {"unit/test_shell.py"}),
        ("tests/unit/test_rule.py", {"unit/test_rule.py"}),
        ("docs/explanation/records.md", set()),
    ],
)  # fmt: skip
def test_those_run_that_import_it(project: Path, changed: str, found: set[str]) -> None:
    assert affected([changed], project) == sorted(f"tests/{name}" for name in found)


@pytest.mark.parametrize(
    "changed", ["pyproject.toml", "tests/conftest.py", "tests/scripts/raft/vote.txt", "crds/a.yaml"]
)
def test_all_run_where_any_may_read_it(project: Path, changed: str) -> None:
    assert affected(["tests/unit/test_rule.py", changed], project) is None


def test_what_the_branch_has_and_what_is_not_committed_is_changed(project: Path) -> None:
    def git(*words: str) -> None:
        own = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main")
        subprocess.run(["git", *own, *words], cwd=project, check=True, capture_output=True)

    git("init")
    git("add", ".")
    git("commit", "-m", "first")
    git("checkout", "-b", "branch")
    assert changed_files(project) == []
    (project / "broker/kavka_broker/core/rule.py").write_text("LIMIT = 4\n")
    git("commit", "-a", "-m", "second")
    (project / "operator/kavka_operator/words.py").unlink()
    (project / "new.py").write_text("")
    assert changed_files(project) == ["broker/kavka_broker/core/rule.py", "operator/kavka_operator/words.py", "new.py"]


def test_outside_of_a_repository_and_in_ci_all_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert changed_files(tmp_path) is None
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.delenv("ALL", raising=False)
    assert chosen(list) == []
    monkeypatch.setenv("ALL", "1")
    assert chosen(list) is None
    monkeypatch.delenv("ALL")
    monkeypatch.setenv("CI", "true")
    assert chosen(list) is None
