"""Operators that end at once, as one whose settings are wrong."""

import os
from pathlib import Path

import pytest

from tests.kube import forks
from tests.support.waiting import until_outside

SECONDS_MAX = 60


def has_ended(pid: int) -> bool:
    """Whether a process has ended, whoever has been told."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def test_an_operator_that_ends_before_it_is_known_says_how(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without KUBECONFIG it ends at once. Its end comes before the test opens a descriptor of it, each time."""
    opened = os.pidfd_open

    def opened_late(pid: int) -> int:
        until_outside(lambda: has_ended(pid), SECONDS_MAX)
        return opened(pid)

    monkeypatch.setattr(os, "pidfd_open", opened_late)
    log = tmp_path / "operator.log"
    assert forks.start([], {}, log).wait(SECONDS_MAX) == 1
    assert "KUBECONFIG" in log.read_text()
