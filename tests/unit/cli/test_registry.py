"""The registry of commands: their order, their help from the source, and what is imported of them."""

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from kavka_cli import commands
from kavka_cli.registry import command_names, help_of


def test_commands_of_the_order_come_first_and_others_by_name(tmp_path: Path) -> None:
    for name in ("zeal.py", "count.py"):
        (tmp_path / name).write_text("")
    more = SimpleNamespace(ORDER=commands.ORDER, __path__=[*commands.__path__, str(tmp_path)])
    assert command_names(more) == [*commands.ORDER, "count", "zeal"]


@pytest.mark.parametrize(
    "head",
    [
        'HELP = "Count."',
        'HELP: Final = "Count."',
        'import nowhere\n\nHELP = (\n    "Cou"\n    "nt."\n)',
    ],
)
def test_the_help_is_read_from_the_source_and_nothing_is_imported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, head: str
) -> None:
    (tmp_path / "a_command_to_count.py").write_text(f"{head}\n\n\ndef run(options):\n    this is no Python\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert help_of("a_command_to_count") == "Count."
    assert "a_command_to_count" not in sys.modules


@pytest.mark.parametrize("text", ["", "HELPS = 1\n", "\ndef run(options):\n    pass\n\n\nHELP = ''\n"])
def test_a_command_without_help_says_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str
) -> None:
    (tmp_path / "a_silent_command.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(LookupError, match="a_silent_command: HELP is missing"):
        help_of("a_silent_command")
