"""Whatever brokers do and whatever becomes of them, the metadata keeps its promises.

Brokers register, live, pause, crash (with or without the end of their logs), stop and are forgotten; leaders
propose sets, some of them from an old state; people elect, reassign, cancel, change bounds. A model knows which
replicas hold every committed record, by the rules that leaders follow: with enough in sync a leader commits what
all in the set have.
"""

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kavka_broker.core.decision import Decision
from kavka_broker.core.metadata.decide.alter_partition import alter_partitions
from kavka_broker.core.metadata.decide.configs import Change, Operation, alter_configs
from kavka_broker.core.metadata.decide.election_policy import MIN_INSYNC, Policy
from kavka_broker.core.metadata.decide.heartbeats import Heartbeat, fence, heartbeat
from kavka_broker.core.metadata.decide.leader_moves import Election, balance, elect_leaders, rescue
from kavka_broker.core.metadata.decide.reassignments import Reassign, reassign
from kavka_broker.core.metadata.decide.registrations import register, unregister
from kavka_broker.core.metadata.decide.topics import CreateTopic, Defaults, create_topics
from kavka_broker.core.metadata.image.configs import Resource, ResourceType
from kavka_broker.core.metadata.image.features import ELR_FEATURE
from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.core.metadata.image.topics import NO_LEADER, RECOVERING, PartitionState
from kavka_broker.core.partition.isr_proposal import InSyncMember, IsrChange
from kavka_broker.protocol.errors import BrokerError
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.metadata.config_record import ConfigRecord
from kavka_broker.protocol.messages.metadata.feature_level_record import FeatureLevelRecord
from kavka_broker.protocol.metadata_records import frame, unframe
from tests.support.cluster import introduction, uuid

IDS = (1, 2, 3, 4, 5)
BROKERS = st.sampled_from(IDS)
REPLICAS = st.lists(BROKERS, min_size=1, max_size=4, unique=True)
TOPIC_ID = uuid(1)
TOPIC = Resource(ResourceType.TOPIC, "t")
PARTITIONS = (0, 1, 2)
PARTITION = st.sampled_from(PARTITIONS)


class Lifecycle(RuleBasedStateMachine):
    """One topic, five brokers."""

    def __init__(self) -> None:
        super().__init__()
        self.live = Metadata()
        self.follower = Metadata()
        self.incarnations = 0
        self.clean: dict[int, int] = {}  # the epoch in which a broker's logs were closed
        self.proposals: list[tuple[int, int, IsrChange]] = []
        #: Of each partition, the brokers that hold every committed record; None after an unclean election: none must.
        self.holders: dict[int, set[int] | None] = {}
        self._replay([FeatureLevelRecord(ELR_FEATURE, 1), ConfigRecord(ResourceType.BROKER, "", MIN_INSYNC, "2")])

    def _replay(self, records: list[Message]) -> None:
        before = self._states()
        for record in records:
            self.live.replay(record)
            self.follower.replay(unframe(frame(record)))
        for partition, state in self._states().items():
            self._note(partition, before.get(partition), state)

    def _states(self) -> dict[int, PartitionState]:
        topic = self.live.topics.get("t")
        return {} if topic is None else dict(topic.partitions)

    def _decide(self, decision: Decision[Any]) -> Any:
        self._replay(list(decision.records))
        return decision.response

    def _try(self, decide: Any) -> Any:
        try:
            decision = decide()
        except BrokerError:
            return None
        return self._decide(decision)

    def _bound(self, state: PartitionState) -> int:
        own = self.live.configs.topic("t").get(MIN_INSYNC)
        common = self.live.configs.all_brokers().get(MIN_INSYNC, "1")
        return min(int(own or common), len(state.replicas))

    def _note(self, partition: int, before: PartitionState | None, state: PartitionState) -> None:
        """What a change shows of the rules, and what the model makes of it."""
        if before is not None:
            assert state.partition_epoch >= before.partition_epoch
            assert state.leader_epoch >= before.leader_epoch
            if state.leader != before.leader:
                assert state.leader_epoch > before.leader_epoch
                assert state.partition_epoch > before.partition_epoch
        held = self.holders.get(partition, set(state.isr))
        if state.leader != NO_LEADER and (before is None or state.leader != before.leader) and held is not None:
            unclean = state.recovery_state == RECOVERING
            assert unclean or state.leader in held, (
                f"{state.leader} leads and lacks committed records: {before} {state}"
            )
            held = None if unclean else held
        assert held is None or set(state.isr) <= held, f"in sync without committed records: {before} {state}"
        if held is None and state.leader != NO_LEADER and len(state.isr) >= self._bound(state):
            # The new leader's log is the truth from here on; followers that it proposes have caught up with it.
            held = set(state.isr) | self._proposed(partition, state)
        self.holders[partition] = held
        self._commit(partition, state)

    def _commit(self, partition: int, state: PartitionState) -> None:
        """A leader with enough in sync commits something new at any moment: only the set has it."""
        held = self.holders[partition]
        if held is not None and state.leader != NO_LEADER and len(state.isr) >= self._bound(state):
            # While a proposal is under way, it commits only records that the proposed followers have too (KIP-497).
            self.holders[partition] = set(state.isr) | (self._proposed(partition, state) & held)

    def _proposed(self, partition: int, state: PartitionState) -> set[int]:
        """The replicas of a proposal under way that still are what they were when their leader looked."""
        return {
            member.broker_id
            for _, _, change in self.proposals
            if (change.partition, change.partition_epoch) == (partition, state.partition_epoch)
            for member in change.isr
            if self._epoch(member.broker_id) == member.broker_epoch
        }

    @initialize(factor=st.integers(1, 4), unclean=st.sampled_from(["true", "false", "false"]))
    def begin(self, factor: int, unclean: str) -> None:
        for broker_id in IDS:
            self.start(broker_id, clean=False)
            self.beat(broker_id)
        self.unclean = unclean == "true"
        configs = {"unclean.leader.election.enable": unclean}
        command = CreateTopic("t", TOPIC_ID, len(PARTITIONS), factor, configs=configs)
        self._decide(create_topics(self.live, [command], Defaults()))

    def _epoch(self, broker_id: int) -> int | None:
        registration = self.live.brokers.get(broker_id)
        return None if registration is None else registration.epoch

    @rule(broker_id=BROKERS, clean=st.booleans())
    def start(self, broker_id: int, clean: bool) -> None:
        """A new process; after a crash the end of its logs is lost."""
        self.incarnations += 1
        epoch = self._epoch(broker_id)
        if not clean or epoch is None or self.clean.get(broker_id) != epoch:
            for held in self.holders.values():
                if held is not None:
                    held.discard(broker_id)
            previous = -1
        else:
            previous = epoch
        self.clean.pop(broker_id, None)
        command = introduction(broker_id, incarnation=self.incarnations, previous_epoch=previous)
        self._decide(register(self.live, command))

    @rule(broker_id=BROKERS, shutdown=st.booleans(), fenced=st.booleans(), behind=st.booleans(), seen=st.booleans())
    def beat(
        self,
        broker_id: int,
        shutdown: bool = False,
        fenced: bool = False,
        behind: bool = False,
        seen: bool = True,
    ) -> None:
        epoch = self._epoch(broker_id)
        if epoch is None:
            return
        offset = epoch - 1 if behind else self.live.offset
        command = Heartbeat(broker_id, epoch, offset, wants_fence=fenced, wants_shutdown=shutdown)
        standing = self._decide(heartbeat(self.live, command, handover_seen=seen))
        if standing.should_shut_down:
            assert standing.is_fenced
            self.clean[broker_id] = epoch

    @rule(broker_id=BROKERS)
    def crashes_and_is_back(self, broker_id: int) -> None:
        self.start(broker_id, clean=False)
        self.beat(broker_id)

    @rule(broker_id=BROKERS)
    def is_cut_off_and_back(self, broker_id: int) -> None:
        self.session_ends(broker_id)
        self.beat(broker_id)

    @rule(broker_id=BROKERS)
    def live_again(self, broker_id: int) -> None:
        self.beat(broker_id)

    @rule(broker_id=BROKERS)
    def session_ends(self, broker_id: int) -> None:
        self._decide(fence(self.live, broker_id, self._epoch(broker_id) or 0))

    @rule(broker_id=BROKERS)
    def forgotten(self, broker_id: int) -> None:
        self._try(lambda: unregister(self.live, broker_id))

    @precondition(lambda self: len(self.proposals) < 10)
    @rule(partition=PARTITION, members=st.sets(BROKERS))
    def leader_looks(self, partition: int, members: set[int]) -> None:
        """A leader sees which follower has caught up; it may ask much later."""
        state = self._states()[partition]
        epoch = self._epoch(state.leader)
        if epoch is None or any(change.partition == partition for _, _, change in self.proposals):
            return  # one proposal of a partition is under way at a time
        isr = [replica for replica in state.replicas if replica in members or replica == state.leader]
        named = tuple(InSyncMember(one, found) for one in isr if (found := self._epoch(one)) is not None)
        change = IsrChange(TOPIC_ID, partition, state.leader_epoch, state.partition_epoch, named)
        self.proposals.append((state.leader, epoch, change))
        # They have caught up.
        held = self.holders[partition]
        if held is not None and state.leader in held:
            held |= set(isr)

    @precondition(lambda self: self.proposals)
    @rule(late=st.booleans())
    def leader_asks(self, late: bool) -> None:
        leader, epoch, change = self.proposals[0 if late else -1]
        self._try(lambda: alter_partitions(self.live, leader, epoch, [change]))
        self.proposals.pop(0 if late else -1)

    @rule(partition=PARTITION, late=st.booleans(), members=st.sets(BROKERS))
    def leader_looks_and_asks(self, partition: int, late: bool, members: set[int]) -> None:
        if len(self.proposals) < 10:
            self.leader_looks(partition, members)
        if self.proposals:
            self.leader_asks(late)

    @precondition(lambda self: len(self.proposals) < 10)
    @rule(partition=PARTITION, members=st.sets(BROKERS), other=BROKERS, unclean=st.booleans())
    def leader_looks_and_much_happens(self, partition: int, members: set[int], other: int, unclean: bool) -> None:
        self.leader_looks(partition, members)
        if unclean:
            self.crashes_and_is_back(other)
        else:
            self.is_cut_off_and_back(other)
        if self.proposals:
            self.leader_asks(late=False)

    @rule(election=st.sampled_from(list(Election)), partition=PARTITION)
    def elected(self, election: Election, partition: int) -> None:
        self._decide(elect_leaders(self.live, election, [("t", partition)]))

    @rule(policy=st.builds(Policy))
    def by_itself(self, policy: Policy) -> None:
        self._decide(balance(self.live, policy))
        self._decide(rescue(self.live, policy))

    @rule(partition=PARTITION, replicas=st.none() | REPLICAS)
    def reassigned(self, partition: int, replicas: list[int] | None) -> None:
        target = None if replicas is None else tuple(replicas)
        self._decide(reassign(self.live, [Reassign("t", partition, target)]))

    @rule(bound=st.sampled_from(["1", "2", "3"]))
    def another_bound(self, bound: str) -> None:
        self._decide(alter_configs(self.live, TOPIC, [Change(MIN_INSYNC, Operation.SET, bound)]))

    @invariant()
    def who_follows_sees_the_same(self) -> None:
        assert list(self.follower.records()) == list(self.live.records())

    @invariant()
    def partitions_are_sound(self) -> None:
        for state in self._states().values():
            assert len(set(state.replicas)) == len(state.replicas) == len(state.directories) > 0
            for some in (state.isr, state.elr, state.adding, state.removing):
                assert set(some) <= set(state.replicas)
                assert len(set(some)) == len(some)
            assert not set(state.isr) & set(state.elr)
            assert not set(state.adding) & set(state.removing)
            assert all(map(self.live.brokers.is_usable, state.isr)), "a fenced broker is in sync"
            if state.leader == NO_LEADER:
                assert not any(map(self.live.brokers.is_usable, state.elr)), "somebody eligible lives, and nobody leads"
            else:
                assert state.leader in state.isr
                assert not state.last_known_elr
            if len(state.isr) >= self._bound(state):
                assert not state.elr or state.isr == (), "enough are in sync, and somebody is eligible beside them"

    @invariant()
    def the_eligible_have_what_is_committed(self) -> None:
        for partition, state in self._states().items():
            held = self.holders[partition]
            if held is not None and state.recovery_state != RECOVERING:
                assert {*state.isr, *state.elr} <= held


TestLifecycle = Lifecycle.TestCase
TestLifecycle.settings = settings(max_examples=200, stateful_step_count=40, deadline=None)
