"""`make help` shows the day of a developer on one screen, and names every command that there is."""

import re
import shutil
import subprocess

import pytest

from tests.tidy.tree import ROOT

LINES_MAX = 24
WIDTH_MAX = 120


@pytest.mark.skipif(shutil.which("make") is None, reason="make is lacking")
def test_help_names_every_command_on_one_screen() -> None:
    shown = subprocess.run(["make", "help"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    commands = re.findall(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)[0].split()
    assert sorted(re.findall(r"^  make ([a-z0-9-]+)  ", shown, re.MULTILINE)) == sorted(commands)
    assert [line for line in shown.splitlines() if len(line) > WIDTH_MAX] == []
    assert len(shown.splitlines()) <= LINES_MAX
    day = ["setup", "check", "test", "test-all", "sim", "chaos", "bench", "e2e"]
    assert sorted(day, key=lambda name: shown.index(f"  make {name} ")) == day
