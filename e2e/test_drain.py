"""`kubectl drain` of the machine that all brokers run on: one goes, and the others stay until it is back.

There is one machine, so the broker that went has no other to go to and waits until this one takes pods again.
"""

from e2e.cluster_namespace import Scene
from e2e.kubectl import ask, tried
from e2e.machine import NODE

DRAIN = ("drain", NODE, "--pod-selector", "kavka.dev/cluster=main", "--delete-emptydir-data", "--ignore-daemonsets")
DRAIN_SECONDS = 45


def test_a_drain_takes_one_broker_the_others_stay_and_nothing_is_lost(loaded: Scene) -> None:
    before = loaded.pods()
    drain = tried(*DRAIN, f"--timeout={DRAIN_SECONDS}s")
    assert drain.returncode != 0, "with one broker away a drain is not done"
    assert "disruption budget" in drain.stdout + drain.stderr
    assert len(loaded.changed(before)) == 1
    assert sorted(loaded.phases().values()) == ["Pending", "Running", "Running"]
    loaded.until_more()

    ask("uncordon", NODE)
    loaded.until_ready()
    assert len(loaded.changed(before)) == 1
    loaded.has_lost_nothing()
