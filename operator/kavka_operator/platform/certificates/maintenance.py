"""One round of keeping the certificates of a cluster in force: read what is kept, draw what is due, write what is new.

The order of writing is what a crash in between needs: the authority first, then the nodes. What is as it should be is
not written again.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final, Protocol

from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.domain.access import Security
from kavka_operator.domain.certificates import SeenCertificates
from kavka_operator.platform.certificates.authority import Pair, facts
from kavka_operator.platform.certificates.bundles import access, joined, parted
from kavka_operator.platform.certificates.renewal import CERTIFICATE, KEY, Keeper
from kavka_operator.platform.security import AUTHORITIES_FILE, NODE_FILE, NODE_SUBJECT, OPERATOR_SUBJECT

TRUSTED: Final = "ca.crt"


class Place(StrEnum):
    """A place beside those of nodes: for clients, for the operator, and for nobody else."""

    CA = "ca"
    OPERATOR = "operator"
    AUTHORITY = "authority"


class Shelf(Protocol):
    """Keeps texts by their names: those of a place, or of a node by its id."""

    def read(self, place: Place | int) -> Mapping[str, str]:
        """The texts that are kept there; none where there is nothing."""
        ...

    def write(self, place: Place | int, texts: Mapping[str, str]) -> None:
        """Keep these texts there, in one step."""
        ...


@dataclass(frozen=True, slots=True)
class Kept:
    """The certificates as they are now, and the way in for the operator."""

    seen: SeenCertificates
    security: Security


@dataclass(frozen=True, slots=True)
class Round:
    """The input of a round. `names` are the hosts of each node, None of one that is on its way out and keeps those
    that it has; `listeners` are the files that came from Secrets.

    `is_let_in` asks every node that runs whether it lets in who shows this.
    """

    cluster: KafkaCluster
    names: Mapping[int, Iterable[str] | None]
    listeners: Mapping[str, str]
    operator_hosts: Iterable[str]
    is_let_in: Callable[[Security], bool]
    now: datetime


def keep(asked: Round, shelf: Shelf) -> Kept:
    """Draw and write what is lacking or near its end. Raises what the shelf raises."""
    keeper = Keeper(asked.cluster, shelf.read(Place.AUTHORITY), asked.now)
    there = shelf.read(Place.OPERATOR)
    operator = Pair(there.get(CERTIFICATE, ""), there.get(KEY, ""))

    def is_trusted(following: Pair) -> bool:
        """Whether every node that runs takes a certificate that the next authority has signed."""
        kept = {CERTIFICATE: following.certificate, KEY: following.key}
        shown = Keeper(asked.cluster, kept, asked.now).certificate(operator, OPERATOR_SUBJECT, asked.operator_hosts)
        return asked.is_let_in(access(keeper.trusted, shown))

    keeper = Keeper(asked.cluster, keeper.advanced(is_trusted), asked.now)
    shelf.write(Place.AUTHORITY, keeper.kept)
    pairs = [_node(asked, keeper, shelf, number, hosts) for number, hosts in asked.names.items()]
    operator = keeper.certificate(operator, OPERATOR_SUBJECT, asked.operator_hosts)
    shelf.write(Place.OPERATOR, {CERTIFICATE: operator.certificate, KEY: operator.key, TRUSTED: keeper.trusted})
    shelf.write(Place.CA, {TRUSTED: keeper.trusted})
    return Kept(keeper.seen_of([*pairs, operator]), access(keeper.trusted, operator))


def _node(asked: Round, keeper: Keeper, shelf: Shelf, number: int, hosts: Iterable[str] | None) -> Pair:
    """Give a node its files. What its former settings may still name stays beside them."""
    there = shelf.read(number)
    former = parted(there.get(NODE_FILE, ""))
    known = facts(former)
    pair = keeper.certificate(former, NODE_SUBJECT, hosts or (known.names if known is not None else ()))
    shelf.write(number, {**there, **asked.listeners, NODE_FILE: joined(pair), AUTHORITIES_FILE: keeper.trusted})
    return pair
