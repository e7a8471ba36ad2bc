"""What must hold after each step of a node, by the names of the TLA+ specifications of Kafka's replication.

Each invariant is an object with a name, a reason and a check of one replica that has just changed. The broker's state
is read from outside: attributes and the bytes of the logs, never through what the broker itself believes to be true.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final

from kavka_broker.core.metadata.image.brokers import GIVEN_UP
from kavka_broker.protocol.metadata_records import frame
from tests.sim.history import Place, place_text
from tests.sim.observed import Committed, Truth, View, Written, amiss_on, damaged_on, place_of, written_at
from tests.sim.steps import FIRST_PARTITION, state_of


@dataclass(slots=True)
class Seen:
    """One replica after a step, and how it was before."""

    node_id: int
    life: int
    place: Place
    high_watermark: int
    end_offset: int
    is_leader: bool
    epoch: int
    view: View
    truth: Truth
    added: list[Written]
    log_start_offset: int
    is_given_up: bool  # its broker has found it damaged, and it leads nothing
    before: "Seen | None" = None

    @property
    def leading_epoch(self) -> int | None:
        """In which it leads, or has led until this step or within it: one that replays several decisions may commit in
        between. Whoever follows learns the high watermark in another step than the epoch.
        """
        before = self.before
        if self.is_leader or before is None or before.life != self.life:
            return self.epoch if self.is_leader else None
        if before.is_leader:
            return before.epoch
        return self.epoch - 1 if self.epoch > before.epoch + 1 else None

    def __str__(self) -> str:
        role = "leads" if self.is_leader else "follows"
        return (
            f"node{self.node_id} {role} {place_text(self.place)} in epoch {self.epoch},"
            f" high watermark {self.high_watermark}, end {self.end_offset}"
        )


@dataclass(frozen=True, slots=True)
class Invariant:
    """`check` yields what is wrong."""

    name: str
    check: Callable[["Invariants", Seen], Iterator[str]]
    why: str
    is_of_damaged: bool  # it holds even where a broker has found its replica damaged, and has to begin it again


METADATA: Final[Place] = ("__cluster_metadata", 0)
IMAGES_COMPARED_EVERY: Final = 5

INVARIANTS: list[Invariant] = []


def invariant(name: str, *, of_damaged: bool = False) -> Callable[[Callable[["Invariants", Seen], Iterator[str]]], Any]:
    """Register a check under its name; its docstring is the reason."""

    def register(check: Callable[["Invariants", Seen], Iterator[str]]) -> Any:
        INVARIANTS.append(Invariant(name, check, check.__doc__ or "", of_damaged))
        return check

    return register


@invariant("LogMatching")
def log_matching(_: "Invariants", seen: Seen) -> Iterator[str]:
    """One epoch and one offset make one batch, in whichever log; offsets follow each other, epochs never fall. Some may
    be missing below the start of the log, where a snapshot stands for damaged records.
    """
    if not seen.added:
        return
    previous = seen.view.batches[-len(seen.added) - 1] if len(seen.view.batches) > len(seen.added) else None
    for batch in seen.added:
        known = seen.truth.written.setdefault((batch.epoch, batch.base_offset), batch)
        if known != batch:
            yield f"{batch} here, {known} elsewhere"
        is_next = previous is None or (batch.base_offset == previous.end_offset and batch.epoch >= previous.epoch)
        if not is_next and batch.base_offset > seen.view.start_offset:
            yield f"{batch} follows {previous}"
        seen.truth.holders.setdefault(batch, {})[seen.node_id] = None
        previous = batch


@invariant("OneLeaderPerEpoch")
def one_leader_per_epoch(_: "Invariants", seen: Seen) -> Iterator[str]:
    """Two leaders in one epoch would both write at the same offsets."""
    if seen.is_leader:
        leader = seen.truth.leaders.setdefault(seen.epoch, seen.node_id)
        if leader != seen.node_id:
            yield f"node{leader} led in this epoch"


@invariant("LeaderCompleteness")
def leader_completeness(_: "Invariants", seen: Seen) -> Iterator[str]:
    """A leader has everything that was committed before its epoch, and in it, where it has led it in another life."""
    before = seen.before
    is_new = before is None or not before.is_leader or before.epoch != seen.epoch or before.life != seen.life
    if seen.is_leader and is_new:
        for batch, epoch in seen.truth.committed:
            if epoch <= seen.epoch and not seen.view.has(batch):
                yield f"lacks {batch}, committed in epoch {epoch}; has {seen.view.at(batch)} there"
                return


@invariant("HighWatermarkMonotone")
def high_watermark_monotone(_: "Invariants", seen: Seen) -> Iterator[str]:
    """A leader's high watermark never falls in its epoch, and never passes the end of its log."""
    if seen.high_watermark > seen.end_offset:
        yield "the high watermark is beyond the end"
    before = seen.before
    if before is None or before.life != seen.life or not (seen.is_leader and before.is_leader):
        return
    if before.epoch == seen.epoch and seen.high_watermark < before.high_watermark:
        yield f"it was {before.high_watermark}"


@invariant("CommitNeedsMinIsr")
def commit_needs_min_isr(invariants: "Invariants", seen: Seen) -> Iterator[str]:
    """A high watermark moves only over records that min.insync.replicas replicas have (KIP-966: strict min ISR)."""
    counting, least = invariants.counting(seen)
    for batch in newly_committed(seen):
        holders = [*seen.truth.holders.get(batch, {})]
        if len([holder for holder in holders if counting is None or holder in counting]) < least:
            yield f"{batch} is committed and only nodes {holders} have it"


@invariant("ConsistentRead")
def consistent_read(_: "Invariants", seen: Seen) -> Iterator[str]:
    """What one replica shows below its high watermark, every other shows too, and forever."""
    start = 0 if seen.before is None or seen.before.life != seen.life else seen.before.high_watermark
    start = max(min(start, seen.high_watermark), seen.log_start_offset)  # nobody is shown what is before the start
    committed = seen.truth.committed
    for batch in seen.view.below(min(seen.high_watermark, seen.truth.end_offset), start):
        if batch != committed_at(committed, batch).batch:
            yield f"{batch} here, {committed_at(committed, batch).batch} was committed"
            return


@invariant("NoCommittedRecordLost")
def no_committed_record_lost(_: "Invariants", seen: Seen) -> Iterator[str]:
    """Only a leader decides what is committed; a follower's high watermark never runs ahead of every leader's."""
    epoch = seen.leading_epoch
    if epoch is not None:
        for batch in newly_committed(seen):
            seen.truth.commit(batch, epoch)
    elif seen.high_watermark > seen.truth.end_offset and seen.truth.committed:
        yield f"leaders have committed up to {seen.truth.end_offset}"


@invariant("LeaderCandidateCompleteness")
def leader_candidate_completeness(invariants: "Invariants", seen: Seen) -> Iterator[str]:
    """A replica that may be elected, as a member of the ISR or the ELR, has every committed record."""
    if invariants.may_lack_now(seen):
        yield from invariants.candidates_lacking(seen.place)


#: What holds even where records may go.
LOOSE_NAMES = ("LogMatching", "OneLeaderPerEpoch", "HighWatermarkMonotone")
LOOSE = [invariant for invariant in INVARIANTS if invariant.name in LOOSE_NAMES]


def newly_committed(seen: Seen) -> list[Written]:
    """What a leader's high watermark has passed that no leader's had before."""
    if seen.leading_epoch is None or seen.high_watermark <= seen.truth.end_offset:
        return []
    return seen.view.below(seen.high_watermark, seen.truth.end_offset)


committed_end = attrgetter("batch.end_offset")


def committed_at(committed: list[Committed], batch: Written) -> Committed:
    return committed[bisect_left(committed, batch.end_offset, key=committed_end)]


class Invariants:
    """All checks over one run."""

    def __init__(self, simulation: Any) -> None:
        self.simulation = simulation
        self.truths: dict[Place, Truth] = {}
        self.views: dict[tuple[int, Place], View] = {}
        self.checks = 0
        self.image: Any = None  # the newest that any node has committed
        self._image_offset = -1
        self.may_lose: dict[str, None] = {}  # topics of which committed records may go
        self._seen: dict[tuple[int, Place], Seen] = {}
        self._marks: dict[tuple[int, Place], tuple[Any, ...]] = {}
        self._images: dict[int, tuple[int, dict[bytes, Any]]] = {}  # by offset: whose, and what it says
        self._epochs: dict[tuple[int, int], int] = {}
        self._configured: dict[tuple[int, Place, str], int] = {}
        self._judged: dict[Place, int] = {}  # up to where candidates have all that is committed
        self._losses: dict[View, int] = {}
        # Nodes that lost power, with the incarnation whose data that cost: they may lack what they had promised.
        self._lossy: dict[int, bytes | None] = {}
        self._lost: dict[int, None] = {}  # all that ever lost power
        self._damaged: dict[int, None] = {}  # all of which a file has been damaged

    def counting(self, seen: Seen) -> tuple[list[int] | None, int]:
        """Voters that count for what the leader commits (None: all), and how many of them must have it."""
        shape = self.simulation.shape
        if seen.place != METADATA:
            return None, self._least_in_sync(seen)
        quorum = self.simulation.nodes[seen.node_id - 1].broker.quorum
        voters = [voter.node_id for voter in quorum.voters]
        # Within the step the set may have become another by one voter, after the majority of the former had agreed.
        return voters, (len(voters) + 1) // 2 if shape.has_voters_in_log else len(voters) // 2 + 1

    def _least_in_sync(self, seen: Seen) -> int:
        """min.insync.replicas as this node knows it now, or knew it when it was looked at before."""
        shape = self.simulation.shape
        return min(self.configured(seen, "min.insync.replicas", shape.min_isr), int(shape.replication_factor))

    def configured(self, seen: Seen, key: str, default: int) -> int:
        """What a topic's config is to this node now, or was when it was looked at before: the lesser of both."""
        image = self.simulation.nodes[seen.node_id - 1].broker.quorum.metadata
        now = int(image.configs.topic(seen.place[0].partition("/")[0]).get(key, default))
        before = self._configured.get((seen.node_id, seen.place, key), now)
        self._configured[seen.node_id, seen.place, key] = now
        return min(before, now)

    def lost_power(self, node: Any) -> None:
        self._lost[node.node_id] = None
        self._lossy[node.node_id] = self._incarnation(node.node_id)
        self.simulation.heirs.lost(node)

    def was_damaged(self, node: Any) -> None:
        """It may have lost as much as with its power: a recovery cuts what it cannot trust."""
        self._damaged[node.node_id] = None
        self.lost_power(node)

    def doubtful(self, *, is_synced: bool) -> Mapping[int, None]:
        """Nodes that may lack records; where all is synced, a loss of power takes none."""
        return self._damaged if is_synced else self._lost

    def _incarnation(self, node_id: int) -> bytes | None:
        registration = None if self.image is None else self.image.brokers.get(node_id)
        return None if registration is None else registration.incarnation_id

    def is_lossy(self, node_id: int) -> bool:
        """It has lost power, and the controller has not heard of it yet."""
        return node_id in self._lossy and self._lossy[node_id] == self._incarnation(node_id)

    def partition_state(self, place: Place) -> Any:
        """As the newest image has it."""
        name, _, topic_id = place[0].partition("/")
        topic = None if self.image is None else self.image.topics.get(name)
        if topic is None or (topic_id and topic.topic_id.hex() != topic_id):
            return None
        return topic.partitions.get(place[1])

    @property
    def committed_ends(self) -> dict[Place, int]:
        """Of the partitions that clients use: up to where they are committed."""
        return {place: truth.end_offset for place, truth in self.truths.items() if place[0] == "t"}

    @property
    def has_losses(self) -> bool:
        """Whether any node has lost power, or something on its disk."""
        return bool(self._lost)

    def lossy(self, *, is_synced: bool = False) -> list[int]:
        """Nodes that have lost something, of which the controller has not heard yet."""
        return [node_id for node_id in self.doubtful(is_synced=is_synced) if self.is_lossy(node_id)]

    def _is_unclean(self, node_id: int) -> bool:
        """Whether it runs, and the controller knows an earlier life of it only."""
        registration = self.image.brokers.get(node_id)
        return registration is None or registration.fenced

    def may_lack_now(self, seen: Seen) -> bool:
        """Whether more is committed than when it was last judged, or this replica has less.

        What the controller decides is judged when it does: see `_check_image`.
        """
        committed, losses = self._judged.get(seen.place, -1), self._losses.get(seen.view, -1)
        self._judged[seen.place], self._losses[seen.view] = seen.truth.end_offset, seen.view.losses
        return committed != seen.truth.end_offset or losses != seen.view.losses

    def candidates_lacking(self, place: Place) -> Iterator[str]:
        state, truth = self.partition_state(place), self.truths.get(place)
        if state is None or truth is None or not truth.committed:
            return
        last = truth.committed[-1].batch
        for broker_id in (*state.isr, *state.elr):
            if state.directory_of(broker_id) in GIVEN_UP:
                continue  # it counts for nothing until it says that it has a new one, and then is a candidate no more
            view = self.views.get((broker_id, place))
            is_trusted = not self.is_lossy(broker_id) and not self._is_telling(broker_id, place)
            if view is not None and not view.has(last) and is_trusted:
                sets = f"isr {state.isr} or elr {state.elr}"
                yield f"node{broker_id} is in {sets}, ends at {view.end_offset}, lacks {last}"

    def _is_telling(self, broker_id: int, place: Place) -> bool:
        """Whether it has found a loss at its start, and has not been let in yet: it has to tell before."""
        return self._is_unclean(broker_id) and place_text(place) in damaged_on(self.simulation.nodes[broker_id - 1])

    # --- a step -------------------------------------------------------------------------------------------------

    def check(self, node: Any) -> None:
        """A step of this node is done. Most change nothing that is looked at here, and must cost next to nothing."""
        broker = getattr(node.server, "broker", None)
        if broker is None:
            return
        before = node.state
        state = state_of(node, broker)
        if state != before:
            node.state = state
            self._look_at(node, broker, state, before if state[:2] == before[:2] and len(state) == len(before) else [])

    def _look_at(self, node: Any, broker: Any, state: list[Any], before: list[Any]) -> None:
        """What has changed; all of it, in a new life, and where any file was cut."""
        if not before or state[2] != before[2]:
            self._look_at_quorum(node, broker.quorum)
        for index, replica in enumerate(broker.partitions, FIRST_PARTITION):
            if not before or state[index] != before[index]:
                place = place_of(replica.topic, replica.topic_id, replica.index)
                self._look(node, place, replica.log, (replica.high_watermark, replica.is_leader, replica.leader_epoch))

    def _look_at_quorum(self, node: Any, quorum: Any) -> None:
        log = quorum.log._log
        # A follower's rules know the high watermark before what it covers is appended; nobody is told of it yet.
        shown = quorum.high_watermark if quorum.is_leader else min(quorum.high_watermark, log.log_end_offset)
        self._look(node, METADATA, log, (shown, quorum.is_leader, quorum.epoch))
        self._check_image(node, quorum)

    def _look(self, node: Any, place: Place, log: Any, role: tuple[int, bool, int]) -> None:
        key = node.node_id, place
        view = self.views.setdefault(key, View(node.node_id, place))
        added = view.follow(log)
        mark = *role, log.log_end_offset, log.log_start_offset, view.version, node.lives
        if self._marks.get(key) == mark:
            return
        self._marks[key] = mark
        truth = self.truths.setdefault(place, Truth(place))
        high_watermark, is_leader, epoch = role
        before = self._seen.get(key)
        if before is not None:
            before.before = None
        # A metadata log is cut where it is damaged, and goes on.
        is_given_up = bool(log.damage) and not is_leader and place != METADATA
        self._seen[key] = seen = Seen(
            node.node_id, node.lives, place, high_watermark, log.log_end_offset, is_leader, epoch, view, truth, added,
            log.log_start_offset, is_given_up, before,
        )  # fmt: skip
        self.checks += 1
        for invariant in self.simulation.rules.get(place[0], LOOSE if place[0] in self.may_lose else INVARIANTS):
            for problem in invariant.check(self, seen) if invariant.is_of_damaged or not seen.is_given_up else ():
                self.simulation.fail(f"{invariant.name}: {seen}: {problem}")

    def _check_image(self, node: Any, quorum: Any) -> None:
        # In one life: what a process had in mind and not on disk when it died, nobody has heard of.
        life = node.node_id, node.lives
        if quorum.epoch < self._epochs.get(life, 0):
            self.simulation.fail(f"MonotonicEpoch: node{node.node_id}: {quorum.epoch} after {self._epochs[life]}")
        self._epochs[life] = quorum.epoch
        image = quorum.metadata
        if image.offset > self._image_offset:  # which is kept apart: an image changes in its place
            self.image, self._image_offset = image, image.offset
            self.simulation.registrations.look(image, quorum.epoch)
            self.simulation.heirs.look(image)
            for place in list(self.truths):
                for problem in self.candidates_lacking(place):
                    self.simulation.fail(f"LeaderCandidateCompleteness: {place_text(place)}: {problem}")
        if node.image_offset != image.offset:
            node.image_offset = image.offset
            if image.offset % IMAGES_COMPARED_EVERY == 0:
                self.compare_image(node.node_id, image)

    def compare_image(self, node_id: int, image: Any) -> None:
        """MetadataLogMatching, one floor up: the same offset makes the same image."""
        says = {frame(record): record for record in image.records()}
        other, known = self._images.setdefault(image.offset, (node_id, says))
        if says.keys() != known.keys():
            mine = [record for key, record in says.items() if key not in known]
            theirs = [record for key, record in known.items() if key not in says]
            self.simulation.fail(
                f"MetadataImagesAgree: at offset {image.offset} node{node_id} has {mine}, node{other} has {theirs}"
            )

    def acknowledged(self, place: Place, last_offset: int) -> None:
        """A producer has been told that this is committed."""
        truth = self.truths.get(place)
        if truth is not None and truth.end_offset <= last_offset:
            self._catch_up(truth, last_offset)
        if truth is None or truth.end_offset <= last_offset:
            end = 0 if truth is None else truth.end_offset
            self.simulation.fail(
                f"AcknowledgedIsCommitted: {place_text(place)}@{last_offset} was acknowledged; committed up to {end}"
            )

    def was_read(self, place: Place, data: memoryview) -> None:
        """A reader was given this batch: it has to be committed by now, and then it is forever."""
        truth = self.truths.setdefault(place, Truth(place))
        batch = written_at(data, 0)
        assert batch is not None, "what the reader took for a batch is none"
        if truth.end_offset < batch.end_offset:
            self._catch_up(truth, batch.end_offset - 1)
        index = bisect_left(truth.committed, batch.end_offset, key=lambda committed: committed.batch.end_offset)
        known = truth.committed[index].batch if index < len(truth.committed) else None
        if known != batch:
            what = f"committed is {known}" if known else f"committed up to {truth.end_offset}"
            self.simulation.fail(f"ReadIsCommitted: {place_text(place)}: {batch} was read; {what}")

    def _catch_up(self, truth: Truth, last_offset: int) -> None:
        """A leader that is damaged, or whose topic goes, may commit within the step that takes its log away: enough
        others have it, then.
        """
        topics = self.image.topics
        is_deleted = all(place_of(topic.name, topic.topic_id, truth.place[1]) != truth.place for topic in topics)
        views = [
            self.views[leader, truth.place] for leader in truth.leaders.values() if (leader, truth.place) in self.views
        ]
        if not is_deleted and all(view.end_offset > last_offset for view in views):
            return
        for view in self.views.values():
            for batch in view.batches if view.place == truth.place else ():
                is_next = truth.end_offset < batch.end_offset <= last_offset + 1
                if is_next and len(truth.holders[batch]) >= self.simulation.shape.min_isr:
                    truth.commit(batch, batch.epoch)

    def seen_at(self, place: Place) -> list[Seen]:
        return [seen for (_, seen_place), seen in self._seen.items() if seen_place == place]

    # --- the end ------------------------------------------------------------------------------------------------

    def missing_at_the_end(self) -> list[str]:
        """What keeps the cluster from being whole again."""
        if self.image is None:
            return ["no node has any metadata"]
        missing = []
        for node in self.simulation.nodes:
            registration = self.image.brokers.get(node.node_id)
            if registration is None or registration.fenced:
                missing.append(f"{node.host} is fenced")
        for topic in self.image.topics:
            for index, state in topic.partitions.items():
                place = place_of(topic.name, topic.topic_id, index)
                if state.leader < 0:
                    missing.append(f"{place_text(place)} has no leader: {state}")
                elif len(state.isr) < len(state.replicas):
                    missing.append(f"{place_text(place)}: in sync are {state.isr}, led by {state.leader}")
                if state.adding or state.removing:
                    missing.append(f"{place_text(place)} is being reassigned: {state}")
                missing += self._parted(place, state.replicas)
        missing += [what for node in self.simulation.nodes for what in amiss_on(node, self.image)]
        return missing + self._parted(METADATA)

    def _parted(self, place: Place, node_ids: Sequence[int] = ()) -> list[str]:
        ends = {
            key[0]: (state.high_watermark, state.end_offset)
            for key, state in self._seen.items()
            if key[1] == place and (not node_ids or key[0] in node_ids)
        }
        if len({offset for pair in ends.values() for offset in pair}) > 1:
            return [f"{place_text(place)}: high watermarks and ends are {ends}"]
        return []

    def compare_images(self) -> None:
        """After healing all nodes must have the same image."""
        for node in self.simulation.nodes:
            self.compare_image(node.node_id, node.broker.quorum.metadata)
