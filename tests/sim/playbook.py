"""All workloads by name, and which of them a seed plays beside the main topic."""

from collections.abc import Sequence
from random import Random
from typing import Final

from tests.sim.audited import Audited
from tests.sim.compaction import Compaction
from tests.sim.consumers import Consumers
from tests.sim.contended import Contended
from tests.sim.coordinated import Coordinated
from tests.sim.cordons import Cordons
from tests.sim.crowds import Crowds
from tests.sim.gatherers import Gatherers
from tests.sim.greedy import Greediness
from tests.sim.groups import Groups
from tests.sim.logins import Logins
from tests.sim.long_requests import LongRequests
from tests.sim.migrating import Migrating
from tests.sim.naming import NamedSessions
from tests.sim.replication_quotas import ReplicationQuotas
from tests.sim.rushing import Rushing
from tests.sim.sharers import Sharers
from tests.sim.streams import Streams
from tests.sim.throttled import Throttled
from tests.sim.transactions import Transactions
from tests.sim.transients import Transients
from tests.sim.trimming import Trimming
from tests.sim.unclean import Unclean
from tests.sim.weak import Weak
from tests.sim.workloads import Workload

WORKLOADS: Final[dict[str, type[Workload]]] = {
    "transients": Transients,
    "groups": Groups,
    "trimming": Trimming,
    "weak": Weak,
    "unclean": Unclean,
    "transactions": Transactions,
    "compaction": Compaction,
    "crowds": Crowds,
    "throttled": Throttled,
    "greedy": Greediness,
    "rushing": Rushing,
    "logins": Logins,
    "audited": Audited,
    "cordons": Cordons,
    "replication_quotas": ReplicationQuotas,
    "named_sessions": NamedSessions,
    "coordinated": Coordinated,
    "contended": Contended,
    "consumers": Consumers,
    "sharers": Sharers,
    "streams": Streams,
    "migrating": Migrating,
    "long_requests": LongRequests,
    "gatherers": Gatherers,
}


#: What waits for a mend.
GATED: Final[tuple[str, ...]] = ()

#: Seeds that were kept, or find a planted defect, before a workload had its share: their stories stay as they were.
BEFORE: Final[dict[str, frozenset[int]]] = {
    "coordinated": frozenset({
        4, 5, 7, 11, 18, 20, 48, 524, 301041, 301363, 309052, 320068, 334101, 940016, 8120000, 259877062,
    }),
    "consumers": frozenset({4}),
    "gatherers": frozenset({48, 307446, 334101}),
    "migrating": frozenset({309052, 940008}),
    "sharers": frozenset({66002, 309052, 237407654}),
    "streams": frozenset({16, 45170582}),
}  # fmt: skip

#: Workloads of many clients. Two of them together hold more connections than `crowds` lets in.
POPULOUS: Final = frozenset({"consumers", "gatherers", "migrating", "sharers", "streams"})

#: Workloads of the same group, of which a seed plays one: the first.
OF_ONE_GROUP: Final = ("migrating", "consumers", "gatherers")


def drawn(seed: int) -> tuple[str, ...]:
    """Which workloads this seed plays. Each has a chance of its own, so that a new one moves no other."""
    chances = {name: Random(f"workload {name} {seed}").random() for name in WORKLOADS if name not in GATED}
    for name, seeds in BEFORE.items():
        if seed in seeds:
            chances.pop(name, None)
    names = [name for name, chance in chances.items() if chance < WORKLOADS[name].share]
    for name in [name for name in OF_ONE_GROUP if name in names][1:]:
        names.remove(name)
    if "crowds" in names:
        for name in [name for name in names if name in POPULOUS][1:]:
            names.remove(name)
    return tuple(names)


def settings(seed: int, names: Sequence[str]) -> dict[str, str]:
    """What the brokers are configured with for these workloads."""
    wanted = (WORKLOADS[name].settings(Random(f"settings {name} {seed}")) for name in names)
    return {key: value for part in wanted for key, value in part.items()}
