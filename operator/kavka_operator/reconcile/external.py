"""What can be said of a cluster that somebody else runs. Nothing is ever to be done to its nodes.

Kafka's admin protocol tells brokers, racks, leaders, limits; it tells neither what clients use of their limits nor for
how long they were held, and the words say so instead of a zero.
"""

from kavka_operator.domain.name_lists import counted
from kavka_operator.domain.observed import SeenCluster, Survey
from kavka_operator.domain.plan import ClusterPlan, Plan, Word, ready, reconciling, stalled

FORGET_CLUSTER = "kavka.dev/forget-cluster-id"
UNTOLD = "Kafka does not tell what clients use of their quotas, nor how long they were held"


def reconcile(
    seen: SeenCluster | None,
    survey: Survey | None,
    lacking: str | None = None,
    barred: tuple[str, str] | None = None,
    error: str | None = None,
) -> ClusterPlan:
    """The words for the cluster.

    `lacking` is what is missing to ask it, `barred` the reason why it does not let us in or is not touched, with words.
    """
    if lacking is not None:
        return Plan(words=stalled("SecretMissing", lacking))
    if barred is not None:
        return Plan(words=_barred(*barred))
    if seen is None:
        return Plan(words=reconciling("NotAnswering", f"spec.external.bootstrapServers: {error or 'not asked yet'}"))
    controllers = "" if survey is not None else "; it does not tell its partitions and controllers to us"
    return Plan(words=ready(f"{counted(len(seen.brokers), 'broker')} answer{_s(seen)}{controllers}; {UNTOLD}"))


def _barred(reason: str, words: str) -> tuple[Word, ...]:
    match reason:
        case "NotAuthenticated":
            return stalled("NotAuthenticated", words)
        case "NotTrusted":
            return stalled("NotTrusted", words)
        case "BadSecret":
            return stalled("BadSecret", words)
        case _:
            return stalled("ClusterReplaced", words)


def _s(seen: SeenCluster) -> str:
    return "s" if len(seen.brokers) == 1 else ""
