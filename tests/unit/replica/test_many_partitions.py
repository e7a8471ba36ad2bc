"""Very many partitions: what is done to each of them is counted."""

import asyncio
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kavka_broker.core.metadata.image.brokers import Brokers
from kavka_broker.core.partition.isr_proposal import InSyncMember, IsrAnswer, IsrChange
from kavka_broker.core.partition.leader import ProposalOutcome
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.metadata.partition_change_record import PartitionChangeRecord
from kavka_broker.replica.hosting.replica_manager import ReplicaManager
from kavka_broker.replica.leading.isr_proposals import TOGETHER_MAX, InSyncKeeper
from kavka_broker.replica.leading.partition import Partition
from tests.sim.loop import SimLoop
from tests.support.in_process import running
from tests.support.waiting import play_simulated, until

PARTITIONS = 40
ID = b"\1" * 16


def test_a_decision_about_one_partition_looks_at_that_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []
    hand_over = ReplicaManager._hand_over

    def counted(manager: ReplicaManager, partition: Partition, state: Any) -> None:
        looked.append(partition.index)
        hand_over(manager, partition, state)

    async def run() -> None:
        async with running(tmp_path) as inside:
            topic_id = await inside.create("t", PARTITIONS)
            while len(list(inside.broker.partitions)) < PARTITIONS:
                await asyncio.sleep(0)
            with monkeypatch.context() as patch:
                patch.setattr(ReplicaManager, "_hand_over", counted)
                changes = [PartitionChangeRecord(7, topic_id), PartitionChangeRecord(9, topic_id)]
                inside.broker.replicas.apply(changes)

    asyncio.run(run())
    assert looked == [7, 9]


class Proposer:
    """A partition as far as a proposal of its leader goes."""

    def __init__(self, index: int, outcomes: list[ProposalOutcome]) -> None:
        self.change = IsrChange(ID, index, 1, 1, (InSyncMember(1),))
        self.isr: tuple[int, ...] = ()
        self.leadership = SimpleNamespace(pending=self.change)
        self.outcomes = outcomes

    def __str__(self) -> str:
        return f"t-{self.change.partition}"

    def isr_answered(self, change: IsrChange, answer: IsrAnswer) -> ProposalOutcome:
        outcome = self.outcomes.pop(0)
        if outcome is not ProposalOutcome.AGAIN:
            self.leadership.pending = None
        return outcome


def _raise(error: BaseException) -> None:
    raise error


def asked(proposers: Sequence[Proposer], refusals: int = 0) -> list[list[int]]:
    """The partitions of each question to the controller, after they have all proposed in one turn of the loop."""
    questions: list[list[int]] = []

    async def alter(changes: Sequence[IsrChange]) -> list[IsrAnswer]:
        questions.append([one.partition for one in changes])
        if len(questions) <= refusals:
            raise BrokerError(ErrorCode.NOT_CONTROLLER)
        return [IsrAnswer(ErrorCode.NONE)] * len(changes)

    async def run(_: SimLoop) -> None:
        keeper = InSyncKeeper(Brokers(), lag_ms_max=1.0, alter_isr=alter, crash=_raise)
        for one in proposers:
            keeper.propose(cast(Partition, one), one.change)
        await until(lambda: not any(one.leadership.pending for one in proposers))
        await keeper.stop()

    play_simulated(run)
    return questions


def test_proposals_of_one_turn_are_asked_together() -> None:
    """A follower comes back, and its first fetch makes its leader propose it for all that they share."""
    proposers = [Proposer(index, [ProposalOutcome.DONE]) for index in range(2 * TOGETHER_MAX + 1)]
    questions = asked(proposers)
    assert list(map(len, questions)) == [TOGETHER_MAX, TOGETHER_MAX, 1]
    assert list(chain(*questions)) == [one.change.partition for one in proposers]


def test_only_what_is_to_be_asked_again_is() -> None:
    proposers = [
        Proposer(0, [ProposalOutcome.DONE]),
        Proposer(1, [ProposalOutcome.AGAIN, ProposalOutcome.DONE]),
        Proposer(2, [ProposalOutcome.WAIT]),
    ]
    assert asked(proposers) == [[0, 1, 2], [1]]


def test_a_question_that_failed_is_asked_again_as_it_was() -> None:
    proposers = [Proposer(0, [ProposalOutcome.DONE]), Proposer(1, [ProposalOutcome.REFUSED])]
    assert asked(proposers, refusals=2) == [[0, 1]] * 3
