"""`kubectl drain` of all machines that brokers run on: one broker goes, and the others stay until it is back.

The broker that went has no machine to go to, and waits until one takes pods again.
"""

from collections.abc import Iterator

import pytest

from e2e.cluster_namespace import Scene
from e2e.kubectl import ask, tried

HOW = ("--pod-selector", "kavka.dev/cluster=main", "--delete-emptydir-data", "--ignore-daemonsets")
DRAIN_SECONDS = 45


@pytest.fixture
def machines(loaded: Scene) -> Iterator[list[str]]:
    """The machines, which take pods again afterwards."""
    found = loaded.machines()
    yield found
    ask("uncordon", *found)


def test_a_drain_takes_one_broker_the_others_stay_and_nothing_is_lost(loaded: Scene, machines: list[str]) -> None:
    before = loaded.pods()
    drain = tried("drain", *machines, *HOW, f"--timeout={DRAIN_SECONDS}s")
    assert drain.returncode != 0, "with one broker away a drain is not done"
    assert "disruption budget" in drain.stdout + drain.stderr
    assert len(loaded.changed(before)) == 1
    assert sorted(loaded.phases().values()) == ["Pending", "Running", "Running"]
    loaded.until_more()

    ask("uncordon", *machines)
    loaded.until_ready()
    assert len(loaded.changed(before)) == 1
    loaded.has_lost_nothing()
