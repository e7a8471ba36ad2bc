"""Acknowledgements of members of share groups, as ShareFetch and ShareAcknowledge bring them."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Protocol

from kavka_broker.coordinator.share.share_fetches import Refuses
from kavka_broker.coordinator.share.share_leader import ShareLeader
from kavka_broker.core.metadata.image.features import SHARE_VERSION
from kavka_broker.core.share.sessions import SessionKey
from kavka_broker.core.share.share_partition import Acknowledgement
from kavka_broker.loop.slices import Cost, Work
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.request.broker import Broker

MEMBER_ID_LENGTH_MAX: Final = 36
PLACES_PER_TURN: Final = 50
"""Partitions whose acknowledgements begin in one turn of the loop."""
PARTITION_COST: Final = 4
"""The cost of a partition of a request or an answer, of a slice."""

Place = tuple[bytes, int]
Begun = BrokerError | asyncio.Future[ErrorCode] | None
"""The refusal of what is said of a partition, a future of what becomes of it, or None where that is over."""


class Topic(Protocol):
    """A topic of a request, with what it says of records."""

    topic_id: bytes
    partitions: Any


def is_served(broker: Broker) -> bool:
    """Whether share groups are switched on."""
    return broker.metadata.features.level(SHARE_VERSION) >= 1


def check_member(group_id: str | None, member_id: str | None) -> SessionKey:
    """Return the member of a request. Raises INVALID_REQUEST."""
    if group_id is None:
        raise BrokerError(ErrorCode.INVALID_REQUEST, "Invalid group id in the request.")
    if not member_id or len(member_id) > MEMBER_ID_LENGTH_MAX:
        raise BrokerError(ErrorCode.INVALID_REQUEST, "Invalid member id in the request.")
    return SessionKey(group_id, member_id)


def said_in(topics: Iterable[Topic], cost: Cost) -> Work[dict[Place, list[Acknowledgement]]]:
    """Return what a request says of its partitions' records."""
    said: dict[Place, list[Acknowledgement]] = {}
    for topic in topics:
        for partition in topic.partitions:
            for batch in partition.acknowledgement_batches:
                acknowledgement = Acknowledgement(batch.first_offset, batch.last_offset, batch.acknowledge_types)
                said.setdefault((bytes(topic.topic_id), partition.partition_index), []).append(acknowledgement)
                if cost.add(PARTITION_COST):
                    yield
            if cost.add(1):
                yield
    return said


async def begin_all(
    key: SessionKey,
    said: Mapping[Place, Sequence[Acknowledgement]],
    refuses: Refuses | None,
    broker: Broker,
    *,
    renews: bool,
) -> dict[Place, Begun]:
    """Take what a member says of partitions' records: no fetch acquires them meanwhile, and none could have before."""
    fetches = broker.as_broker.sharing.fetches
    begun: dict[Place, Begun] = {}
    refused: dict[tuple[ErrorCode, str | None], BrokerError] = {}
    async for some in broker.slices.in_turns(list(said.items()), PLACES_PER_TURN):
        tasks: dict[Place, asyncio.Task[Begun]] = {}
        for place, of_place in some:
            try:
                leader = fetches.acknowledged_at(key, place, refuses)
            except BrokerError as error:  # at once, and one for all: a request may name very many
                begun[place] = refused.setdefault((error.code, error.message), error.as_value())
                continue
            tasks[place] = asyncio.ensure_future(_begin(key, leader, of_place, may_renew=renews))
        begun |= zip(tasks, await asyncio.gather(*tasks.values()), strict=True)
    return begun


async def settled(begun: Mapping[Place, Begun]) -> dict[Place, BrokerError | None]:
    """Return what was refused, and None for the other partitions, when all of it is written down."""
    problems: dict[Place, BrokerError | None] = {}
    for place, answer in begun.items():
        if isinstance(answer, asyncio.Future):
            error = await answer
            problems[place] = None if error is ErrorCode.NONE else BrokerError(error)
        else:
            problems[place] = answer
    return problems


async def _begin(key: SessionKey, leader: ShareLeader, said: Sequence[Acknowledgement], *, may_renew: bool) -> Begun:
    try:
        return await leader.begin_acknowledging(key.member_id, said, may_renew=may_renew)
    except BrokerError as error:
        return error.as_value()
