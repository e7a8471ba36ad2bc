"""An image is built of what the Dockerfile copies: all of that reaches the build, and a change of it is seen."""

import re
import subprocess
from fnmatch import fnmatch

from e2e.images import SOURCES
from tests.tidy.tree import ROOT

COPIES = re.compile(r"^COPY (?!--from)(\S+) ", re.MULTILINE)

SUFFIXES = (".py", ".in", ".txt")  # of code, and of requirements


def copied() -> set[str]:
    return {path.rstrip("/") for path in COPIES.findall((ROOT / "Dockerfile").read_text())}


def test_what_is_copied_is_not_left_out_of_the_build() -> None:
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    let_in = [line[1:] for line in lines if line.startswith("!")]
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    for path in copied():
        code = [file for file in tracked if file == path or (file.startswith(f"{path}/") and file.endswith(SUFFIXES))]
        code = code or [file for file in tracked if file == path]
        left_out = [file for file in code if not any(fnmatch(file, f"{rule}*") for rule in let_in)]
        assert code, path
        assert not left_out, path


def test_an_image_is_made_again_when_what_is_copied_changes() -> None:
    assert not [path for path in copied() if not any(f"{path}/".startswith(f"{source}/") for source in SOURCES)]
