"""Vale, a linter of prose: its build takes 74 s of two processors and 54 MB, and needs a C compiler."""

import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from tools.go_build import GoProgram
from tools.prerequisites import at_least

VALE: Final = GoProgram("vale", "github.com/vale-cli/vale/v3", Path(__file__).parent / "go", "vale", uses_c=True)
SETTINGS: Final = Path(__file__).with_name("vale.ini")
SECONDS_MAX: Final = 600


class Finding(NamedTuple):
    """A place where a rule does not hold."""

    file: str
    line: int
    rule: str
    message: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.message} [{self.rule}]"


class ProseError(Exception):
    """Vale cannot look at the files."""


def is_here() -> bool:
    """Whether there is vale, or Go and a C compiler to build it."""
    return VALE.is_here() or (at_least(r"go(\d+)\.(\d+)", (1, 25), "go", "version") and shutil.which("cc") is not None)


def findings(files: Sequence[Path], settings: Path = SETTINGS) -> list[Finding]:
    """Return what the rules of `settings` find in the files. Raises NoModulesError and ProseError."""
    line = [str(VALE.path()), f"--config={settings}", "--output=JSON", "--no-exit", *map(str, files)]
    ran = subprocess.run(line, check=False, capture_output=True, text=True, timeout=SECONDS_MAX)
    if ran.returncode:
        raise ProseError((ran.stderr or ran.stdout).strip())
    return sorted(
        Finding(file, found["Line"], found["Check"].removeprefix("Kavka."), found["Message"])
        for file, all_found in json.loads(ran.stdout).items()
        for found in all_found
    )
