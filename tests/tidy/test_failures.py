"""A test that fails says how to run it alone."""

import subprocess
import sys
from pathlib import Path

from tests.tidy.tree import ROOT


def test_a_failure_says_how_to_run_it_alone(tmp_path: Path) -> None:
    test = tmp_path / "test_it.py"
    test.write_text("def test_fails():\n    assert False\n")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "tests.conftest",
        "--randomly-seed=7",
        f"--rootdir={tmp_path}",
    ]
    ran = subprocess.run([*command, str(test)], cwd=ROOT, check=False, capture_output=True, text=True)
    assert "alone: .venv/bin/pytest 'test_it.py::test_fails' --randomly-seed=7" in ran.stdout.splitlines()
