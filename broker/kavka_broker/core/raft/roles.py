"""What a node of the quorum can be, and what it must keep in mind while it is that.

Unattached    knows an epoch and no leader of it
Prospective   asks the others whether an election would have a chance (pre-vote): no epoch is spent, no vote given
Candidate     has begun a new epoch, voted for itself and asks for the votes of the others
Leader        has won; writes the log
Follower      fetches from the leader; one that has no vote is called an observer
Resigned      led this epoch and has given it up

                  fetch timeout, leader lost             majority                  majority
Unattached, Follower  ------------>  Prospective  ------------>  Candidate  ------------>  Leader
         <------------------------------  refused: the leader lives     |                     |  no majority
                                          <-----------------------------+ refused             v  heard of
any of them, when it hears of a larger epoch: Unattached or Follower                      Resigned
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from kavka_broker.core.raft.effects import Later, Send
from kavka_broker.core.raft.log_view import SnapshotId
from kavka_broker.core.raft.replicas import Replicas
from kavka_broker.core.raft.voters import Voter
from kavka_broker.protocol.messages.add_raft_voter_response import AddRaftVoterResponse
from kavka_broker.protocol.messages.fetch_request import FetchRequest
from kavka_broker.protocol.messages.remove_raft_voter_response import RemoveRaftVoterResponse

#: The deadline where no event is waited for.
NEVER_MS: Final = 1 << 62

Endpoints = tuple[tuple[str, str, int], ...]  # listener, host, port


@dataclass(frozen=True, slots=True)
class LeaderAt:
    """A leader and its address."""

    node_id: int
    endpoints: Endpoints


@dataclass(slots=True)
class Fetching:
    """The one request that may be under way to a leader, or to a node that may know it."""

    in_flight: Send | None = None
    retry_at_ms: int = 0


@dataclass(slots=True)
class Unattached:
    """The node knows no leader."""

    election_at_ms: int
    fetching: Fetching = field(default_factory=Fetching)


@dataclass(slots=True)
class Tally:
    """The votes by node. A peer that cannot be reached counts as a refusal in this round."""

    voters: tuple[Voter, ...]
    granted: set[int] = field(default_factory=set)
    refused: set[int] = field(default_factory=set)
    asked: list[Send] = field(default_factory=list)

    def __post_init__(self) -> None:
        known = {voter.node_id for voter in self.voters}
        assert self.granted <= known, f"{self.granted} vote, and the voters are {known}"

    @property
    def is_won(self) -> bool:
        return len(self.granted) > len(self.voters) // 2

    @property
    def is_lost(self) -> bool:
        return len(self.voters) - len(self.refused) <= len(self.voters) // 2

    def is_of(self, send: Send) -> bool:
        """Whether the request belongs to this round, and is not answered yet."""
        return any(question is send for question in self.asked) and send.peer.node_id not in self.granted | self.refused


@dataclass(slots=True)
class Prospective:
    """The node asks whether an election would have a chance."""

    leader: LeaderAt | None  # the leader it followed, and follows again if the others still hear of it
    tally: Tally
    over_at_ms: int
    is_over: bool = False
    fetching: Fetching = field(default_factory=Fetching)  # a bootstrap server may know the leader


@dataclass(slots=True)
class Candidate:
    """The node stands for election, in an epoch of its own."""

    tally: Tally
    over_at_ms: int
    is_over: bool = False


@dataclass(slots=True)
class Download:
    """A snapshot on its way from the leader."""

    snapshot: SnapshotId
    position: int = 0


@dataclass(slots=True)
class Follower:
    """The node fetches from the leader."""

    leader: LeaderAt
    patience_ms: int  # the fetch timeout and a little more, not the same on all nodes
    timeout_at_ms: int
    asks_at_ms: int  # when to see whether the leader is to change this node's own vote
    has_fetched: bool = False  # it has answered, and was not lost since: no candidate gets a pre-vote against it
    lost_at_ms: int | None = None  # the connection died; when to ask the other voters
    fetching: Fetching = field(default_factory=Fetching)
    download: Download | None = None
    asked: Send | None = None


@dataclass(slots=True)
class Parked:
    """A fetch that waits for records or a higher watermark."""

    later: Later
    request: FetchRequest
    until_ms: int


@dataclass(slots=True)
class VoterChange:
    """The one change of voters that may be under way."""

    later: Later | None  # the request that is answered once the change is committed
    kind: type[AddRaftVoterResponse | RemoveRaftVoterResponse]
    until_ms: int
    voters: tuple[Voter, ...]
    early: Later | None = None  # the request that is answered once the change is appended
    newcomer: Voter | None = None
    asked: Send | None = None  # the question whether the new voter speaks the quorum's kraft.version
    offset: int | None = None  # of the record, once it is appended


@dataclass(slots=True)
class Leader:
    """The node has won the election."""

    start_offset: int  # of the batch that begins the epoch
    replicas: Replicas
    begin_at_ms: int
    is_established: bool = False  # a majority has the beginning of the epoch: the high watermark may be told
    parked: list[Parked] = field(default_factory=list)
    told: tuple[int, int] = (-1, -1)  # log end and high watermark, as waiting fetches were last told
    change: VoterChange | None = None

    def __post_init__(self) -> None:
        assert self.start_offset >= 0, self.start_offset


@dataclass(slots=True)
class Resigned:
    """The node has given its epoch up."""

    election_at_ms: int
    is_final: bool = False  # shutting down: never stands for election again


Role: TypeAlias = Unattached | Prospective | Candidate | Leader | Follower | Resigned


def endpoint_of(endpoints: Iterable[tuple[str, str, int]], listener: str) -> tuple[str, int] | None:
    """The host and port of a listener."""
    return next(((host, port) for name, host, port in endpoints if name == listener), None)
