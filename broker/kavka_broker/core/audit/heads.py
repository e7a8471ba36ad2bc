"""What the head of a chain says: the cluster of its node and, in a first head, where the node's chains before ended.

It stands in the value of the head, so that the hash covers it, and the signature with it. Heads of older nodes name no
cluster: their signature proves who wrote the chain, and not where.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from kavka_broker.core.audit.chain_ends import End, as_fields, ends_of

CLUSTER: Final = "cluster"
BEFORE: Final = "before"


class HeadValue(NamedTuple):
    """The cluster that a head names, or an empty text; and the ends that a first head names."""

    cluster: str = ""
    before: tuple[End, ...] = ()


def value_of(cluster: str, before: Sequence[End] | None = None) -> bytes:
    """Return the value of a head; `before` are the ends that a first head names, and None of a later head."""
    fields: dict[str, object] = {CLUSTER: cluster} if cluster else {}
    if before or (cluster and before is not None):
        fields[BEFORE] = as_fields(before)  # a reader of before the clusters were named wants it wherever a value is
    return json.dumps(fields, separators=(",", ":")).encode() if fields else b""


def read_head(value: bytes, *, is_first: bool) -> HeadValue:
    """Return what the value of a head says. Raises ValueError."""
    if not value:
        return HeadValue()
    try:
        fields = json.loads(value)
    except (ValueError, RecursionError) as problem:
        raise ValueError(f"no value of a head: {problem}") from None
    is_named = isinstance(fields, dict) and isinstance(fields.get(CLUSTER, ""), str)
    if not is_named:
        raise ValueError("no value of a head: the cluster is no text")
    return HeadValue(fields.get(CLUSTER, ""), ends_of(value) if is_first else ())


@dataclass(slots=True)
class TrailCluster:
    """The cluster whose trail is read. Where its id is not known, it is the first that a good head names.

    With `is_required` a chain has to name it. Otherwise chains of older nodes, which name none, are judged without.
    """

    id: str = ""
    is_required: bool = False

    def is_named_by(self, cluster: str) -> bool:
        """Whether a head that names this cluster belongs here."""
        self.id = self.id or cluster
        return self.id == cluster
