"""`make demo` as the README has it: in a clean clone, with nothing but Python, make and the index that pip has here."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.operator.local.installation import environment, settings_of_pip
from tests.operator.local.support import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
SECONDS_MAX = 1200

pytestmark = [pytest.mark.slow, pytest.mark.extended]


def labels(text: str) -> list[str]:
    """What each figure of the summary is about."""
    return re.findall(r"^ {2,4}(\S.*?)(?:  |$)", text.partition("all as it should be")[2], re.MULTILINE)


def test_a_clean_clone_shows_what_the_readme_says(tmp_path: Path) -> None:
    block, shown = re.findall(r"^```(?:sh|text)\n(.*?)^```", README, re.MULTILINE | re.DOTALL)[:2]
    assert block == "make demo\n"
    clone, home = tmp_path / "kavka", tmp_path / "home"
    home.mkdir()
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
    ran = subprocess.run(
        block.split(), cwd=clone, env=environment(home) | settings_of_pip(), stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=SECONDS_MAX,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout
    assert labels(shown)
    assert labels(ran.stdout) == labels(shown), ran.stdout
    status = subprocess.run(["git", "status", "--porcelain"], cwd=clone, check=True, capture_output=True, text=True)
    assert status.stdout == "", "the work tree is as it was cloned"
