"""What a leader knows of its followers, and what follows from it: the in-sync set and the high watermark.

A follower's fetch says how far its log goes: it asks for the offset behind its last record. From these answers alone
the leader works out two things.

**The in-sync set.** A follower is caught up while it has everything, or had everything at some moment within
`replica.lag.time.max.ms`. One that is not is proposed for removal. One outside may come in when its log reaches the
high watermark AND the start of the leader's epoch (before that it may hold records that this leader does not, and has
not cut them off yet: the fourth rule of Kip320.tla), when its broker is unfenced, and when it fetches as the very
incarnation that is registered (KIP-903).

**The high watermark**: the least log end of the *maximal* in-sync set (KIP-497). While a proposal is under way the
leader does not know which set the controller has: so every replica that may be in it counts, one that shall be added
and one that shall be removed alike. A caught-up follower outside the set is waited for as well, otherwise a busy
leader would run away from it forever. And nothing moves while fewer than `min.insync.replicas` are in sync (KIP-966).

Time is monotonic and handed in. `Contact` is shared by all partitions that a broker follows here: an incremental fetch
names only those that changed, and yet says of all others that they are where they were.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final

from kavka_broker.core.metadata.image.topics import PartitionState
from kavka_broker.core.partition.isr_proposal import UNKNOWN_BROKER_EPOCH, InSyncMember, IsrAnswer, IsrChange
from kavka_broker.protocol.errors import ErrorCode

NO_OFFSET: Final = -1
NEVER_MS: Final = -1e18

#: The epoch of a broker that may be in an in-sync set; None for one that is fenced, stopping or unknown.
Eligible = Callable[[int], int | None]


@dataclass(slots=True)
class Contact:
    """When a broker last fetched anything from this leader."""

    fetched_ms: float = NEVER_MS


@dataclass(slots=True)
class Follower:
    """A follower of one partition, as its fetches in this leader epoch show it."""

    contact: Contact
    caught_up_ms: float  # when the follower was known to have every record
    log_end_offset: int = NO_OFFSET  # not known before its first fetch
    log_start_offset: int = NO_OFFSET
    broker_epoch: int = UNKNOWN_BROKER_EPOCH
    fetched_ms: float = NEVER_MS
    fetched_end_offset: int = NO_OFFSET  # where the leader's log ended at its last fetch
    given_offset: int = NO_OFFSET  # from where it was given records last

    def is_given_again(self, offset: int) -> bool:
        """Note that records from `offset` on are given; whether these were given before."""
        before, self.given_offset = self.given_offset, offset
        return before == offset


class ProposalOutcome(Enum):
    """The leader's reaction to the answer to a proposal."""

    DONE = auto()  # the ISR is certain again
    REFUSED = auto()  # the ISR is the same as before
    AGAIN = auto()  # propose it again, a little later
    WAIT = auto()  # the controller knows better: its decision comes with the metadata


#: The controller has not taken the proposal, and nothing has changed.
REVERTED: Final = (ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.INELIGIBLE_REPLICA)
#: The proposal was made from a state that is out of date.
OUTDATED: Final = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.INVALID_UPDATE_VERSION,
    ErrorCode.INVALID_REQUEST,
    ErrorCode.NEW_LEADER_ELECTED,
)


@dataclass(slots=True)
class LeaderState:
    """The leadership of one epoch over a partition, which begins at `start_offset` of the leader's log."""

    node_id: int
    leader_epoch: int
    start_offset: int
    lag_ms_max: float
    partition_epoch: int = -1
    isr: tuple[int, ...] = ()
    maximal_isr: tuple[int, ...] = ()
    pending: IsrChange | None = None
    followers: dict[int, Follower] = field(default_factory=dict)

    def __post_init__(self) -> None:
        assert self.leader_epoch >= 0, self.leader_epoch
        assert self.start_offset >= 0, self.start_offset

    # --- what the controller decides ----------------------------------------------------------------------------

    def apply(self, state: PartitionState, contact_of: Callable[[int], Contact], now_ms: float) -> None:
        """Take over replicas and ISR. A newer partition epoch ends any proposal under way."""
        assert state.leader_epoch == self.leader_epoch, "another epoch is another reign"
        assert self.node_id in state.isr, f"{self.node_id} leads and is not in sync: {state.isr}"
        assert set(state.isr) <= set(state.replicas), f"in sync {state.isr}, replicas {state.replicas}"
        if state.partition_epoch < self.partition_epoch:
            return
        known, is_first = self.followers, self.partition_epoch < 0
        self.followers = {
            broker_id: known.get(broker_id)
            # Members that the controller has added to the ISR get the time of a lag to prove it.
            or Follower(contact_of(broker_id), now_ms if broker_id in state.isr and is_first else NEVER_MS)
            for broker_id in state.replicas
            if broker_id != self.node_id
        }
        if state.partition_epoch > self.partition_epoch:
            self._take_over(state.isr, state.partition_epoch)

    def _take_over(self, isr: tuple[int, ...], partition_epoch: int) -> None:
        assert partition_epoch >= self.partition_epoch, f"{self.partition_epoch} goes back to {partition_epoch}"
        assert self.node_id in isr, f"{self.node_id} leads and would not be in sync: {isr}"
        self.isr = self.maximal_isr = isr
        self.partition_epoch = partition_epoch
        self.pending = None

    # --- what followers say -------------------------------------------------------------------------------------

    def fetched(
        self,
        follower: Follower,
        offset: int,
        *,
        log_start_offset: int,
        broker_epoch: int,
        end_offset: int,
        now_ms: float,
    ) -> None:
        """Note a follower's fetch at `offset` while the log ends at `end_offset`: it has all records below `offset`."""
        assert end_offset >= follower.fetched_end_offset, "the log of a leader does not shrink"
        if offset >= end_offset:
            follower.caught_up_ms = max(follower.caught_up_ms, now_ms)
        elif offset >= follower.fetched_end_offset >= 0:
            # The follower has every record that existed at its last fetch, so it was caught up then.
            follower.caught_up_ms = max(follower.caught_up_ms, follower.fetched_ms)
        follower.log_end_offset = offset
        follower.log_start_offset = log_start_offset
        follower.broker_epoch = broker_epoch
        follower.fetched_ms = follower.contact.fetched_ms = now_ms
        follower.fetched_end_offset = end_offset

    def appended(self, end_offset_before: int) -> None:
        """Note that the log grows: a follower that had all up to `end_offset_before` was caught up at last contact."""
        assert end_offset_before >= self.start_offset, f"{end_offset_before} is before the reign"
        for follower in self.followers.values():
            if follower.log_end_offset == end_offset_before:
                follower.caught_up_ms = max(follower.caught_up_ms, follower.contact.fetched_ms)
                follower.fetched_ms = follower.contact.fetched_ms
                follower.fetched_end_offset = end_offset_before

    # --- what follows -------------------------------------------------------------------------------------------

    def is_caught_up(self, follower: Follower, end_offset: int, now_ms: float) -> bool:
        return follower.log_end_offset == end_offset or now_ms - follower.caught_up_ms <= self.lag_ms_max

    def committed_end(self, end_offset: int, min_isr: int, eligible: Eligible, now_ms: float) -> int:
        """Offset up to which every required replica has the log, or NO_OFFSET where too few are in sync."""
        assert min_isr >= 1, min_isr
        if len(self.isr) < min_isr:
            return NO_OFFSET
        least = end_offset
        maximal_isr = self.maximal_isr
        for broker_id, follower in self.followers.items():
            if follower.log_end_offset < least and (
                broker_id in maximal_isr
                or (self.is_caught_up(follower, end_offset, now_ms) and self._is_eligible(broker_id, eligible))
            ):
                least = follower.log_end_offset
        return least

    def _is_eligible(self, broker_id: int, eligible: Eligible) -> bool:
        epoch = eligible(broker_id)
        told = self.followers[broker_id].broker_epoch
        return epoch is not None and told in (epoch, UNKNOWN_BROKER_EPOCH)

    def least_start(self, start_offset: int, eligible: Eligible) -> int:
        """The least start of this log and of those of all followers that are alive; NO_OFFSET until each has fetched as
        the incarnation that is registered: what a former one said of its start, a crash may have taken back.
        """
        starts = [
            follower.log_start_offset if self._is_eligible(broker_id, eligible) else NO_OFFSET
            for broker_id, follower in self.followers.items()
            if eligible(broker_id) is not None
        ]
        return min(start_offset, *starts) if starts else start_offset

    def joining(self, high_watermark: int, end_offset: int, eligible: Eligible, now_ms: float) -> tuple[int, ...]:
        """Followers that may join the ISR. One that is silent or too slow would be removed again at the next check."""
        assert high_watermark <= end_offset, f"{high_watermark} is committed of a log that ends at {end_offset}"
        if self.pending is not None or len(self.isr) > len(self.followers):
            return ()
        least = max(high_watermark, self.start_offset)
        return tuple(
            broker_id
            for broker_id, follower in self.followers.items()
            if broker_id not in self.isr
            and follower.log_end_offset >= least
            and now_ms - follower.contact.fetched_ms <= self.lag_ms_max
            and self.is_caught_up(follower, end_offset, now_ms)
            and self._is_eligible(broker_id, eligible)
        )

    def lagging(self, end_offset: int, now_ms: float) -> tuple[int, ...]:
        """Members of the ISR that have not been caught up for too long."""
        if self.pending is not None:
            return ()
        return tuple(
            broker_id
            for broker_id in self.isr
            if broker_id in self.followers and not self.is_caught_up(self.followers[broker_id], end_offset, now_ms)
        )

    # --- proposals ----------------------------------------------------------------------------------------------

    def propose(self, topic_id: bytes, partition: int, *, add: tuple[int, ...], remove: tuple[int, ...]) -> IsrChange:
        """Propose another ISR; until the controller answers, the larger set counts."""
        assert self.pending is None, "one proposal at a time"
        assert self.node_id not in remove, "a leader does not remove itself"
        assert set(add).isdisjoint(self.isr), f"{add} shall come in, and {self.isr} are in sync"
        assert set(remove) <= set(self.isr), f"{remove} shall go out, and {self.isr} are in sync"
        assert self.followers.keys() >= set(add), f"{add} shall come in, and {list(self.followers)} follow"
        isr = (*(replica for replica in self.isr if replica not in remove), *add)
        assert self.node_id in isr, f"the leader {self.node_id} would not be in sync: {isr}"
        self.maximal_isr = (*self.isr, *add)
        self.pending = IsrChange(
            topic_id, partition, self.leader_epoch, self.partition_epoch, tuple(map(self._member, isr))
        )
        return self.pending

    def _member(self, broker_id: int) -> InSyncMember:
        follower = self.followers.get(broker_id)
        return InSyncMember(broker_id) if follower is None else InSyncMember(broker_id, follower.broker_epoch)

    def answered(self, change: IsrChange, answer: IsrAnswer) -> ProposalOutcome:
        """Take the controller's answer to `change`.

        What the controller has decided counts once it comes with the metadata: until then the larger set counts. The
        answer may be ahead of a change of `min.insync.replicas` that was decided before it: by the former bound and
        the new ISR a leader would commit what an eligible one (KIP-966) has not got.
        """
        if self.pending is not change:
            return ProposalOutcome.DONE  # the metadata was faster
        if answer.error == ErrorCode.NONE:
            if answer.leader_epoch != self.leader_epoch or answer.partition_epoch != self.partition_epoch:
                return ProposalOutcome.WAIT
            self._take_over(answer.isr, answer.partition_epoch)
            return ProposalOutcome.DONE
        if answer.error in REVERTED:
            self._take_over(self.isr, self.partition_epoch)
            return ProposalOutcome.REFUSED
        return ProposalOutcome.WAIT if answer.error in OUTDATED else ProposalOutcome.AGAIN

    def __iter__(self) -> Iterator[tuple[int, Follower]]:
        return iter(self.followers.items())
