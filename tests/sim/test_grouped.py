"""Clients of groups: whom they ask for what others have committed, and how many of them a seed has."""

from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from kavka_broker.protocol.messages.offset_fetch_response import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from tests.sim.grouped import Grouped
from tests.sim.history import History
from tests.sim.playbook import OF_ONE_GROUP, POPULOUS, WORKLOADS, drawn

PLACE = ("t", 2)


class Told(Grouped):
    """A client whose coordinator answers at once: 107 was committed by a member that had read from epoch 5."""

    async def call(self, *_: Any, **__: Any) -> OffsetFetchResponse:
        partition = OffsetFetchResponsePartitions(2, 107, 5)
        return OffsetFetchResponse(
            groups=[OffsetFetchResponseGroup("g", [OffsetFetchResponseTopics("t", partitions=[partition])])]
        )


@pytest.mark.parametrize(("known", "is_asked"), [(4, False), (5, True), (6, True)])
def test_a_leader_of_an_older_epoch_than_what_was_committed_is_not_asked(known: int, *, is_asked: bool) -> None:
    """Seed 7000003 with sharers: a member went on behind the end of a leader that had been replaced."""
    member = Told("member", SimpleNamespace(random=Random(1)), [("node2", 9092)], History())  # type: ignore[arg-type]
    member.topic_ids["t"], member._epochs[PLACE], member._leaders[PLACE] = bytes(16), known, ("node2", 9092)
    asked = member.committed(PLACE)
    with pytest.raises(StopIteration) as ended:
        asked.send(None)
    assert ended.value.value == 107
    assert (member.known_leader(PLACE) is not None) == is_asked
    assert member._epochs[PLACE] == max(known, 5)


def test_where_connections_are_few_one_group_has_many_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two such groups with coordinated transactions held all connections of an address, and the seed had no end."""
    for name in (*POPULOUS, "crowds"):
        monkeypatch.setattr(WORKLOADS[name], "share", 1.1)
    assert len(POPULOUS.intersection(drawn(1))) == 1
    monkeypatch.setattr(WORKLOADS["crowds"], "share", 0.0)
    others = POPULOUS.difference(OF_ONE_GROUP[1:])
    assert POPULOUS.intersection(drawn(1)) == others, "a seed plays one of those that are of one group"
