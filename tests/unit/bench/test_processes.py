"""What a run of the bench leaves behind in the session of whoever called it: nothing."""

import subprocess
import sys
from pathlib import Path

FAVOUR = """
import os, sys
from pathlib import Path
from bench import processes
processes.PROCESSES, processes.AUTOGROUP_PAUSE_SECONDS = Path(sys.argv[1]), 0
own = processes.PROCESSES / str(os.getpid())
own.mkdir()
(own / "autogroup").write_text("/autogroup-7 nice 3")
processes.favour(-19, 1)
print((own / "autogroup").read_text(), own.name)
"""


def test_the_session_of_its_caller_weighs_as_before_at_the_end(tmp_path: Path) -> None:
    (tmp_path / "1").mkdir()
    done = subprocess.run([sys.executable, "-c", FAVOUR, str(tmp_path)], capture_output=True, text=True, check=True)
    during, name = done.stdout.split()
    assert (during, (tmp_path / "1" / "autogroup").read_text()) == ("-19", "-19")
    assert (tmp_path / name / "autogroup").read_text() == "3"
