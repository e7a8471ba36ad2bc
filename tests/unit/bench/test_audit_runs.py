"""What a run of the audit's bench takes is counted as long as any of its processes lives."""

import os
import subprocess
import sys

import pytest

from bench.audit import own_seconds, shared_bytes


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read in /proc")
def test_a_process_that_has_ended_and_is_not_waited_for_has_no_memory() -> None:
    """Java leaves one such child: nothing of a run with Spark was counted from then on."""
    child = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert shared_bytes(child.pid) == 0 < shared_bytes(os.getpid())
    assert own_seconds(child.pid) >= 0
    assert child.wait() == 0
