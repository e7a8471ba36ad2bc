"""The page that compares placements shows what Apache Kafka's placer and ours answer today."""

import subprocess
import sys

import pytest


@pytest.mark.java
def test_the_table_is_that_of_both_placers() -> None:
    checked = subprocess.run(
        [sys.executable, "-m", "tools.placement_table", "--check"], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
