"""Titles of commits, and of which: a repository is made, with a branch beside its main."""

import subprocess
from pathlib import Path

import pytest

from tools.commit_titles import TITLE_MAX, main, new_titles, problems, title_of

GOOD = "A cut log is synced by a thread"


def git(root: Path, *arguments: str) -> None:
    author = ["-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *author, *arguments], cwd=root, check=True, capture_output=True)


def commit(root: Path, *titles: str) -> None:
    for title in titles:
        git(root, "commit", "--allow-empty", "-m", title)


@pytest.mark.parametrize("title", [GOOD, "x y " + "z" * (TITLE_MAX - 4), "Docs: what a stop leaves behind"])
def test_a_good_title_has_no_problems(title: str) -> None:
    assert list(problems(title)) == []


@pytest.mark.parametrize("title", ["Fix", "More tests", "x y " + "z" * (TITLE_MAX - 3), f"fixup! {GOOD}", f"{GOOD}."])
def test_a_bad_title_has_one_problem(title: str) -> None:
    assert len(list(problems(title))) == 1


def test_only_what_is_not_on_main_is_judged(tmp_path: Path) -> None:
    git(tmp_path, "init", "--initial-branch=main")
    commit(tmp_path, "Old", "Older history stays as it was, however long the titles are that somebody gave it then")
    assert new_titles(tmp_path) == []
    git(tmp_path, "checkout", "-b", "work")
    commit(tmp_path, GOOD, "Fix")
    assert new_titles(tmp_path) == ["Fix", GOOD]
    git(tmp_path, "update-ref", "refs/remotes/origin/main", "HEAD~1")
    assert new_titles(tmp_path) == ["Fix"], "what is told is what the others do not have"


def test_without_a_repository_there_is_nothing_to_judge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert new_titles(tmp_path) == []


def test_a_message_is_judged_before_it_is_a_commit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    message = tmp_path / "COMMIT_EDITMSG"
    message.write_text(f"# comment\n\n{GOOD}\n\nWhy.\n")
    assert title_of(message.read_text()) == GOOD
    assert main([str(message)]) == 0
    message.write_text("Fix\n")
    assert main([str(message)]) == 1
    assert "Fix\n    says what changes" in capsys.readouterr().out
