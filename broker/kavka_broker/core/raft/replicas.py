"""What a leader knows of the replicas that fetch from it: how far they are on disk, and when they were last heard.

A follower fetches only what follows its synced end, so the offset of a fetch is an acknowledgement. It counts only in
the epoch in which it was made: a new leader begins with nothing known, and hears from every replica again.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from kavka_broker.core.raft.voters import Voter, majority_offset
from kavka_broker.protocol.uuids import ZERO

#: The time within which a replica that asks to vote has to have caught up.
CAUGHT_UP_WITHIN_MS: Final = 3_600_000
#: The time after which a silent observer is forgotten.
OBSERVER_SESSION_MS: Final = 300_000
#: The most observers that are remembered; more are served, but not listed.
OBSERVERS_MAX: Final = 1_000
NEVER: Final = -1

Key = tuple[int, bytes]  # node id, directory id


@dataclass(slots=True)
class Replica:
    """A replica that fetches. Offsets and times are -1 until it does."""

    node_id: int
    directory_id: bytes
    end_offset: int = -1
    fetched_ms: int = NEVER
    caught_up_ms: int = NEVER
    leader_end_at_fetch: int = -1
    told_high_watermark: int = -1


@dataclass(slots=True)
class Replicas:
    """All replicas but the leader itself."""

    start_ms: int
    by_key: dict[Key, Replica] = field(default_factory=dict)

    def fetched(self, key: Key, offset: int, leader_end: int, now_ms: int, *, votes: bool = False) -> Replica | None:
        """Note that a replica has all records below `offset` on its disk."""
        assert 0 <= offset <= leader_end, f"a replica has {offset} of a log that ends at {leader_end}"
        replica = self.heard(key, now_ms, votes=votes)
        assert replica is None or replica.fetched_ms <= now_ms, f"{replica} fetched behind {now_ms}"
        if replica is None:
            return None
        if offset >= leader_end:
            replica.caught_up_ms = now_ms
        elif 0 <= replica.leader_end_at_fetch <= offset:
            # The replica has all records that existed at its last fetch.
            replica.caught_up_ms = max(replica.caught_up_ms, replica.fetched_ms)
        replica.end_offset = offset
        replica.leader_end_at_fetch = leader_end
        replica.fetched_ms = now_ms
        return replica

    def heard(self, key: Key, now_ms: int, *, votes: bool = False) -> Replica | None:
        """The replica of this key. None where it has no id, or where it has no vote and too many are known."""
        if key[0] < 0:
            return None
        replica = self.by_key.get(key)
        if replica is None:
            if not votes and not self._has_room(now_ms):
                return None
            replica = self.by_key[key] = Replica(*key)
            assert votes or len(self.by_key) <= OBSERVERS_MAX, len(self.by_key)
        return replica

    def _has_room(self, now_ms: int) -> bool:
        if len(self.by_key) >= OBSERVERS_MAX:
            self.forget_silent(now_ms)
        return len(self.by_key) < OBSERVERS_MAX

    def forget_silent(self, now_ms: int) -> None:
        """Forget silent replicas. Observers come and go; a voter loses nothing by being made again."""
        silent = [key for key, replica in self.by_key.items() if replica.fetched_ms <= now_ms - OBSERVER_SESSION_MS]
        for key in silent:
            del self.by_key[key]

    def listed(self, now_ms: int) -> list[tuple[Key, Replica]]:
        """Replicas that were heard of lately."""
        since_ms = now_ms - OBSERVER_SESSION_MS
        return [(key, replica) for key, replica in self.by_key.items() if replica.fetched_ms > since_ms]

    def of(self, voter: Voter) -> Replica | None:
        """The replica of a voter. One named without a directory (kraft.version 0) is known by its id alone."""
        if voter.directory_id != ZERO:
            return self.by_key.get((voter.node_id, voter.directory_id))
        found = [replica for replica in self.by_key.values() if replica.node_id == voter.node_id]
        return max(found, key=lambda replica: replica.fetched_ms, default=None)

    def committed(self, voters: Iterable[Voter], node_id: int, synced_offset: int) -> int:
        """The offset up to which a majority of the voters has the log synced. `node_id` is the leader."""
        assert synced_offset >= 0, synced_offset
        voters = tuple(voters)
        durable = {node_id: synced_offset}
        for voter in voters:
            replica = self.of(voter)
            if voter.node_id != node_id and replica is not None:
                durable[voter.node_id] = max(replica.end_offset, 0)
        offset = majority_offset(durable, voters)
        assert offset <= max(durable.values()), f"a majority has {offset}, and each of {durable} less"
        return offset

    def majority_heard_ms(self, voters: Iterable[Voter], node_id: int, now_ms: int) -> int:
        """The time since which some majority, the leader included, was heard of."""
        voters = tuple(voters)
        assert len({voter.node_id for voter in voters}) == len(voters), f"a node votes twice: {voters}"
        others = [voter for voter in voters if voter.node_id != node_id]
        needed = len(voters) // 2 + 1 - (len(voters) - len(others))
        if needed <= 0:
            return now_ms
        replicas = [self.of(voter) for voter in others]
        heard = sorted(
            (max(replica.fetched_ms, self.start_ms) for replica in replicas if replica is not None), reverse=True
        )
        return heard[needed - 1] if len(heard) >= needed else self.start_ms

    def has_caught_up(self, key: Key, now_ms: int) -> bool:
        """Whether a replica that is to become a voter would not hold the quorum up."""
        replica = self.by_key.get(key)
        if replica is None:
            return False
        return replica.caught_up_ms > NEVER and replica.fetched_ms > now_ms - CAUGHT_UP_WITHIN_MS
