"""What the coming and going of a broker means for the partitions that it holds.

    withdraw   it is fenced, stops or is unregistered: out of every ISR, others lead
    forfeit    it stopped uncleanly and may have lost the end of its logs: no longer eligible either (KIP-966)
    take_up    it is unfenced: a partition without a leader may find one again

Each looks at every partition of the image: some tenth of a microsecond where the broker has no part in it, which an
index would have to earn back with every other change.
"""

from collections.abc import Callable, Collection, Iterator

from kavka_broker.core.metadata.decide.election_policy import Policy, rules_of
from kavka_broker.core.metadata.decide.leader_election import Usable, usable_in
from kavka_broker.core.metadata.decide.partition_change import difference, settle
from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.core.metadata.image.topics import NO_LEADER, PartitionState
from kavka_broker.protocol.messages.metadata.partition_change_record import PartitionChangeRecord

Want = Callable[[PartitionState], PartitionState | None]


def withdraw(
    metadata: Metadata, broker_id: int, policy: Policy, *, directories: Collection[bytes] | None = None
) -> Iterator[PartitionChangeRecord]:
    """Take the broker out of every ISR, or only where its replica is in one of these directories."""

    def want(state: PartitionState) -> PartitionState | None:
        if broker_id not in state.isr and state.leader != broker_id:
            return None
        if directories is not None and state.directory_of(broker_id) not in directories:
            return None
        return _out_of_sync(state, broker_id)

    return revise(metadata, policy, usable_in(metadata.brokers, gone=broker_id), want)


def forfeit(
    metadata: Metadata, broker_id: int, policy: Policy, *, kept: Collection[bytes] = ()
) -> Iterator[PartitionChangeRecord]:
    """Take the broker out of every ISR and eligible set, except where its directory is among `kept`."""

    def want(state: PartitionState) -> PartitionState | None:
        if broker_id not in state.isr and broker_id not in state.elr and state.leader != broker_id:
            return None
        if state.directory_of(broker_id) in kept:
            return None
        return _out_of_sync(state, broker_id)

    usable = usable_in(metadata.brokers, gone=broker_id)
    return revise(metadata, policy, usable, want, lost=frozenset({broker_id}))


def take_up(metadata: Metadata, broker_id: int, policy: Policy) -> Iterator[PartitionChangeRecord]:
    """Elect leaders again where there are none and this broker has a replica."""

    def want(state: PartitionState) -> PartitionState | None:
        return state if state.leader == NO_LEADER and broker_id in state.replicas else None

    return revise(metadata, policy, usable_in(metadata.brokers, back=broker_id), want)


def revise(
    metadata: Metadata, policy: Policy, usable: Usable, want: Want, *, lost: frozenset[int] = frozenset()
) -> Iterator[PartitionChangeRecord]:
    """Settle every partition of which `want` returns a state; None leaves it alone."""
    for topic in metadata.topics:
        rules = None
        for partition, state in topic.partitions.items():
            wanted = want(state)
            if wanted is None:
                continue
            rules = rules or rules_of(metadata, topic.name, policy)
            assert wanted.replicas == state.replicas, f"who comes and goes changes no replicas: {wanted}"
            record = difference(topic.topic_id, partition, state, settle(state, wanted, rules, usable, lost=lost))
            if record is not None:
                yield record


def _out_of_sync(state: PartitionState, broker_id: int) -> PartitionState:
    return state._replace(isr=tuple(replica for replica in state.isr if replica != broker_id))
