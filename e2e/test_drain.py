"""`kubectl drain` of all machines: one broker goes, and the others stay until it is back.

The broker that went has no machine to go to, and waits until one takes pods again.
"""

import json
from collections.abc import Iterator

import pytest

from e2e.cluster_namespace import Scene
from e2e.kubectl import ask, tried
from tests.support.control_plane import Json

HOW = ("--pod-selector", "kavka.dev/cluster=main", "--delete-emptydir-data", "--ignore-daemonsets")
DRAIN_SECONDS = 45


def taking_pods() -> list[str]:
    """The machines that take pods of ours."""
    listed = json.loads(ask("get", "nodes", "--output", "json"))["items"]
    return [node["metadata"]["name"] for node in listed if not node["spec"].get("unschedulable") and not barred(node)]


def barred(node: Json) -> bool:
    """Whether a taint of the machine keeps pods away."""
    return any(taint["effect"] in ("NoSchedule", "NoExecute") for taint in node["spec"].get("taints", ()))


@pytest.fixture
def machines(loaded: Scene) -> Iterator[list[str]]:
    """The machines, which take pods again afterwards. One without a broker would take the broker that goes."""
    found = loaded.machines()
    others = [name for name in taking_pods() if name not in found]
    if others:
        pytest.skip(f"{others[0]} has no broker of the test, and would take the one that is drained")
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
