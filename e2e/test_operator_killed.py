"""The operator is killed in the middle of a roll, and the next one ends it."""

from e2e.cluster_namespace import Scene
from e2e.kubectl import ask, until
from e2e.release import OPERATORS

OPERATOR_PODS = ("--selector", "app.kubernetes.io/component=operator")


def operator_pods() -> set[str]:
    return set(ask("get", "pods", *OPERATOR_PODS, "--output", "name", namespace=OPERATORS).split())


def test_the_next_operator_ends_the_roll_and_restarts_each_broker_once(loaded: Scene) -> None:
    before, killed = loaded.pods(), operator_pods()
    loaded.wants(config={"num.io.threads": "4"})
    until(lambda: len(loaded.changed(before)) == 1)
    ask("delete", "pods", *OPERATOR_PODS, "--grace-period=0", "--force", namespace=OPERATORS)
    seen = {name: {uid} for name, uid in before.items()}

    def is_over() -> bool:
        for name, uid in loaded.pods().items():
            seen[name].add(uid)
        return all(len(uids) > 1 for uids in seen.values()) and loaded.is_ready()

    until(is_over)
    assert not operator_pods() & killed
    assert {name: len(uids) for name, uids in seen.items()} == dict.fromkeys(before, 2)
    loaded.has_lost_nothing()
