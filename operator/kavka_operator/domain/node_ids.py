"""The ids of nodes: they belong to the name of a pool, wherever it stands in the list, and outlive it.

A pool has the ids from its first on, `NODE_IDS_PER_POOL` of them. The first is drawn when the pool is first seen and
kept in the status of the cluster, so that no change of the list gives a node the id, and with it the replicas, of
another. A pool that was taken out keeps its ids too: applied again it finds its volumes. Only where none are free does
a new pool get those of one that is gone.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import count

from kavka_operator.api.cluster_status import POOL_NAMES_MAX
from kavka_operator.api.pools import NODE_IDS_PER_POOL, NodePool


def first_ids(pools: Sequence[NodePool], known: Mapping[str, int]) -> Mapping[str, int]:
    """The first id of every pool by its name: as known, and for new pools the smallest that nobody has."""
    found = dict(known)
    for pool in pools:
        if pool.name not in found:
            if len(found) >= POOL_NAMES_MAX:
                _forget_one(found, {pool.name for pool in pools})
            found[pool.name] = _free(found.values())
    return found


def _forget_one(known: dict[str, int], wanted: set[str]) -> None:
    """Forget the pool that is gone and has the smallest ids. Pools that are wanted are fewer than may be known."""
    gone = min((name for name in known if name not in wanted), key=lambda name: known[name])
    del known[gone]


def _free(taken: Iterable[int]) -> int:
    """The smallest first id that no pool has."""
    firsts = set(taken)
    return next(first for first in count(0, NODE_IDS_PER_POOL) if first not in firsts)
