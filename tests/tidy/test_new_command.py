"""A command is added in one file: that of CONTRIBUTING.md is put beside the others, listed, run, and on the page."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.tidy.tree import ROOT

SECTION: Final = re.compile(r"^## Add a command in one file\n(.*?)^## ", re.DOTALL | re.MULTILINE)
COMMAND: Final = re.compile(r"A whole command, `(\w+\.py)`.*?```python\n(.*?)```", re.DOTALL)
PLACE: Final = re.compile(r"`(cli/[\w/]+)`")
SECONDS_MAX: Final = 60

ADDED: Final = """
import sys
import kavka_cli.commands as commands
commands.__path__.append(sys.argv.pop(1))
"""
KAVKA: Final = f"{ADDED}from kavka_cli import main; main()"
PAGE: Final = f"{ADDED}from tools.command_page import page; print(page())"
IMPORTED: Final = f"""{ADDED}
from kavka_cli import main
try:
    main()
except SystemExit:
    print("imported:", *sorted(name for name in sys.modules if name.startswith("kavka_cli.commands.")))
"""


def command() -> tuple[str, str]:
    """The file of the document: its name and its text."""
    section = SECTION.search((ROOT / "CONTRIBUTING.md").read_text())
    assert section is not None
    found = COMMAND.search(section[1])
    assert found is not None
    return found[1], found[2]


def ran(code: str, scratch: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """A process in which the command of the document is one of ours."""
    name, text = command()
    (scratch / name).write_text(text)
    line = [sys.executable, "-c", code, str(scratch), *words]
    return subprocess.run(line, cwd=ROOT, check=False, capture_output=True, text=True, timeout=SECONDS_MAX)


def test_its_folder_and_the_files_that_commands_share_exist() -> None:
    section = SECTION.search((ROOT / "CONTRIBUTING.md").read_text())
    assert section is not None
    (folder,) = PLACE.findall(section[1])
    shared = re.findall(r"`(\w+\.py)`[,.]", section[1].partition("A whole command")[0])
    assert len(shared) == 5
    assert [name for name in shared if not (ROOT / folder).parent.joinpath(name).is_file()] == []


def test_the_command_of_the_document_runs(tmp_path: Path) -> None:
    cluster = tmp_path / "main.yaml"
    cluster.write_text((ROOT / "examples/quickstart.yaml").read_text())
    state = ("--state-dir", str(tmp_path / "state"))
    assert ran(KAVKA, tmp_path, "apply", "-f", str(cluster), *state).returncode == 0
    done = ran(KAVKA, tmp_path, "count", *state)
    assert (done.returncode, done.stderr) == (0, "")
    assert "KafkaCluster 1\n" in done.stdout


def test_the_command_of_the_document_is_listed_and_has_its_page(tmp_path: Path) -> None:
    listed = ran(KAVKA, tmp_path, "--help")
    assert "    count     Count resources by their kind.\n" in listed.stdout, listed.stderr
    page = ran(PAGE, tmp_path).stdout
    assert "## kavka count\n\nCount resources by their kind.\n" in page
    assert "| `--context NAME` |" in page.partition("## kavka count")[2]


def test_a_command_is_imported_when_its_name_is_the_word_given(tmp_path: Path) -> None:
    commands = "imported:{}\n"
    assert commands.format("") in ran(IMPORTED, tmp_path, "--help").stdout
    got = ran(IMPORTED, tmp_path, "count", "--help").stdout
    assert got.endswith(commands.format(" kavka_cli.commands.count"))
    got = ran(IMPORTED, tmp_path, "quota", "recommend", "--help").stdout
    group = "kavka_cli.commands.quota"
    assert got.endswith(commands.format(f" {group} {group}.recommend"))


def test_the_command_of_the_document_is_as_the_linters_want_it(tmp_path: Path) -> None:
    name, text = command()
    (tmp_path / name).write_text(text)
    for words in (["check", "--quiet"], ["format", "--check", "--quiet"]):
        done = subprocess.run(
            [Path(sys.executable).parent / "ruff", *words, f"--config={ROOT / 'pyproject.toml'}", str(tmp_path)],
            check=False,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout
