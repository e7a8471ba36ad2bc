"""A trail of a cluster as its nodes write it: real journals, with starts, kills and retention, in one partition."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache

from kavka_broker.core.audit.buffer import Journal
from kavka_broker.core.audit.chain import HEAD_MS, Chain, Entry, Kind
from kavka_broker.core.audit.chain_ends import End, with_end
from kavka_broker.core.audit.events import Lifecycle
from kavka_broker.core.audit.heads import TrailCluster
from kavka_broker.core.audit.keys import HmacKey, SigningKey, VerifyingKey
from kavka_broker.core.audit.trail_check import TrailCheck
from kavka_broker.core.audit.verification import Verdict

KEY = HmacKey(bytes(range(32)))
CLUSTER, OTHER_CLUSTER = "abcdefghijklmnopqrstuv", "ABCDEFGHIJKLMNOPQRSTUV"
BEGIN_MS = 1_790_000_000_000
SECOND_MS = 1_000


@dataclass
class Node:
    """A node of the cluster, how far its clock is ahead, whether its clients are refused nothing, what it keeps on its
    disk, and its journal while it runs. With an empty `cluster` it is an older node, whose heads name none.
    """

    id: int
    key: SigningKey = KEY
    starts: int = 0
    ends: tuple[End, ...] = ()
    journal: Journal | None = None
    ahead_ms: int = 0
    is_quiet: bool = False
    cluster: str = CLUSTER

    def start(self, now_ms: int) -> None:
        """Begin a chain."""
        self.starts += 1
        self.journal = Journal(Chain(f"{self.id}-{self.starts}", self.key, self.ends, self.cluster), now_ms)
        self.journal.window.note(Lifecycle("START", str(self.id), "0.1.0"))

    def write(self, now_ms: int, *, is_last: bool = False) -> list[Entry]:
        """Return what the topic takes of the node now."""
        assert self.journal is not None
        self.journal.close_window(now_ms, is_last=is_last)
        entries = self.journal.batch(now_ms, is_last=is_last)
        if entries:
            last = entries[-1]
            for is_certain in (False, True):
                self.ends = with_end(self.ends, End(last.source, last.sequence, last.hash, is_certain))
            self.journal.written()
        return entries


@dataclass
class Trail:
    """The entries of a partition, by offset from `log_start` on."""

    entries: list[Entry] = field(default_factory=list)
    log_start: int = 0
    now_ms: int = BEGIN_MS
    nodes: list[Node] = field(default_factory=lambda: [Node(number) for number in (1, 2, 3)])

    def run(self, seconds: int, nodes: Sequence[int] = (0, 1, 2)) -> None:
        """Have these nodes run: each is refused something every second, unless it is quiet, and writes it."""
        for second in range(seconds):
            self.now_ms += SECOND_MS
            for place in nodes:
                node = self.nodes[place]
                if node.journal is None:
                    node.start(self.now_ms + node.ahead_ms)
                assert node.journal is not None
                if not node.is_quiet:
                    node.journal.window.denied("User:eve", "::1", "READ", "topic", f"secret-{second % 7}")
                self.entries += node.write(self.now_ms + node.ahead_ms)

    def stop(self, place: int) -> None:
        """Have a node end its chain."""
        self.entries += self.nodes[place].write(self.now_ms + self.nodes[place].ahead_ms, is_last=True)
        self.nodes[place].journal = None

    def kill(self, place: int) -> None:
        """Have a node end without a word."""
        self.nodes[place].journal = None

    def forget(self, count: int) -> None:
        """Delete the oldest records, as retention does."""
        del self.entries[:count]
        self.log_start += count

    def verdicts(
        self, keys: Sequence[VerifyingKey] = (KEY,), cluster: str = "", *, is_required: bool = False
    ) -> dict[str, Verdict]:
        """Return what a verification says."""
        check = TrailCheck(keys, TrailCluster(cluster, is_required))
        for entry in self.entries:
            check.add(0, self.log_start, entry)
        return check.verdicts()

    def of(self, source: str) -> list[int]:
        """Return the places of the entries of a chain."""
        return [place for place, entry in enumerate(self.entries) if entry.source == source]

    def heads_of(self, source: str) -> list[int]:
        """Return the places of the heads of a chain."""
        return [place for place in self.of(source) if self.entries[place].kind in (Kind.HEAD, Kind.END)]


def long_trail() -> Trail:
    """Three nodes over ten minutes: node 1 is stopped and started, node 2 killed and started, node 3 just runs."""
    return Trail(list(_entries()))


@cache
def _entries() -> tuple[Entry, ...]:
    trail = Trail()
    trail.run(3 * HEAD_MS // SECOND_MS + 20)
    trail.stop(0)
    trail.run(30, (1, 2))
    trail.kill(1)
    trail.run(40, (0, 2))
    trail.run(5 * HEAD_MS // SECOND_MS + 10)
    return tuple(trail.entries)
