"""Shell completion as bash uses it, and the examples that come with the command."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kavka_cli.packaged_examples import names, text_of
from kavka_operator.live_views.tables import VIEWS
from tests.unit.operator.person import run

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    code, said = run("completion", "bash")
    assert code == 0
    path = tmp_path_factory.mktemp("completion") / "kavka.bash"
    path.write_text(said)
    return path


def completed(script: Path, *words: str) -> set[str]:
    """The words that bash offers for the last of these."""
    before, last = words[-2], words[-1]
    lines = [
        f"source {script}",
        f"COMP_WORDS=({' '.join(map(repr, words))}); COMP_CWORD={len(words) - 1}",
        f"_shtab_kavka kavka {last!r} {before!r}",
        'printf "%s\\n" "${COMPREPLY[@]}"',
    ]
    found = subprocess.run(["bash", "-c", "\n".join(lines)], capture_output=True, text=True, check=True)
    return set(found.stdout.split())


def test_commands_options_and_choices_are_completed(script: Path) -> None:
    assert completed(script, "kavka", "to") == {"top", "topics"}
    assert completed(script, "kavka", "top", "--o") == {"--once", "--output"}
    assert completed(script, "kavka", "top", "--view", "") == set(VIEWS)


def test_commands_of_a_group_are_completed(script: Path) -> None:
    assert completed(script, "kavka", "audit", "") >= {"run", "verify"}


def test_profiles_are_completed_by_their_names(script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = tmp_path / "kavka"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m kavka_cli "$@"\n')
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("KAVKA_CONFIG_DIR", str(tmp_path))
    for name in ("prod-eu", "prod-us", "dev"):
        assert run("profile", "create", name, "--bootstrap", "x:1")[0] == 0
    assert completed(script, "kavka", "profile", "use", "prod") == {"prod-eu", "prod-us"}
    assert completed(script, "kavka", "topics", "--profile", "d") == {"dev"}


def test_another_shell_is_refused_by_name() -> None:
    code, said = run("completion", "ksh")
    assert (code, "ksh" in said, "bash" in said) == (2, True, True), said


def test_every_example_is_printed_as_it_stands_in_the_tree() -> None:
    assert names() == sorted(path.stem for path in (ROOT / "examples").glob("*.yaml"))
    for name in names():
        assert run("example", name) == (0, text_of(name))
        assert text_of(name) == (ROOT / "examples" / f"{name}.yaml").read_text()


def test_examples_are_listed_with_a_sentence_each() -> None:
    code, said = run("example")
    assert (code, len(said.splitlines())) == (0, len(names()) + 1)
    assert "A whole Kafka on this machine" in said


def test_an_unknown_example_is_answered_with_the_known_ones() -> None:
    code, said = run("example", "big")
    assert code == 1
    assert said.startswith('error: there is no example "big"; write one of compacted, ')
