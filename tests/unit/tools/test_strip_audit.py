"""The image of the analytics has `kavka audit run` and none of the commands whose libraries it lacks."""

from pathlib import Path

from tests.tidy.tree import ROOT
from tools.image.strip_audit import OTHER_COMMANDS, strip


def test_every_other_command_goes_and_this_one_stays(tmp_path: Path) -> None:
    commands = {path.name for path in (ROOT / "cli").glob("kavka_*/")}
    for command in commands:
        (tmp_path / command).mkdir()
    strip(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"kavka_cli", "kavka_audit_run"}
    assert commands - {"kavka_cli", "kavka_audit_run"} == {*OTHER_COMMANDS}
