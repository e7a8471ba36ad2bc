"""The operator's image holds `kubernetes.aio` alone: the operator runs on what is left of the package."""

import os
import subprocess
import sys
from pathlib import Path

import kubernetes

from tests.tidy.tree import ROOT
from tools.image.strip import OTHER_COMMANDS, strip

WHOLE = Path(kubernetes.__file__).parent
PROGRAM = """
import sys
import kavka_operator.process.operator
import kubernetes
print(kubernetes.__file__, kubernetes.__version__)
print(sorted(name for name in sys.modules if name.startswith("kubernetes.") and not name.startswith("kubernetes.aio")))
"""


def test_the_operator_needs_nothing_that_is_taken_out(tmp_path: Path) -> None:
    left = tmp_path / "kubernetes"
    left.mkdir()
    (left / "__init__.py").write_text((WHOLE / "__init__.py").read_text())
    (left / "aio").symlink_to(WHOLE / "aio")
    for part in ("client", "config"):
        (left / part).mkdir()
        (left / part / "__init__.py").write_text("raise AssertionError('it is not taken out')\n")
    strip(left)
    assert sorted(path.name for path in left.iterdir()) == ["__init__.py", "aio"]
    paths = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": paths},
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines() == [f"{left}/__init__.py {kubernetes.__version__}", "[]"]


TABLES = f"""
import sys
sys.modules |= dict.fromkeys({(*OTHER_COMMANDS, "rich", "textual")})
import kavka_cli.commands.top, kavka_top.once, kavka_operator.live_views.sources
"""


def test_the_tables_of_top_are_left_and_need_no_terminal_library() -> None:
    commands = {path.name for path in (ROOT / "cli").glob("kavka_*/")}
    assert commands - {*OTHER_COMMANDS} == {"kavka_cli", "kavka_top"}
    ran = subprocess.run([sys.executable, "-c", TABLES], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
