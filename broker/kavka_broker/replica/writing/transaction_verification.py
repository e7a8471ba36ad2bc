"""Asks a transaction's coordinator whether partitions are part of it, before anything is appended to them (KIP-890)."""

import asyncio
from collections.abc import Mapping

from kavka_broker.core.partition.producer_state import ProducerStates
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.replica.writing.produce_context import Coordinators

Place = tuple[str, int]  # topic, partition


async def ask_for_verdicts(
    coordinators: Coordinators,
    transactional_id: str,
    producer: tuple[int, int],
    asked: Mapping[Place, ProducerStates],
    *,
    adds: bool,
) -> dict[Place, int]:
    """The coordinator's error code for each partition. What it cannot be asked is its error for all; a missing right
    of brokers is INVALID_TXN_STATE to clients.

    Each question is noted where a marker would end it: one that comes before the append makes the verdict void. The end
    of the transaction before is waited for: without that each transaction would cost its client a round of retries. Its
    markers may come while a coordinator waits too: then it is asked once more.
    Nobody is asked where `transaction.partition.verification.enable` is off, unless the partition is to be added.
    """
    assert coordinators.attempts_max >= 1, coordinators.attempts_max
    producer_id, epoch = producer
    attempt, now = 0, asyncio.get_running_loop().time
    while True:
        attempt, asked_at = attempt + 1, now()
        for producers in asked.values():
            producers.await_verdict(producer_id)
        if not adds and not coordinators.verifies:
            return dict.fromkeys(asked, ErrorCode.NONE)
        try:
            codes = await coordinators.admit(transactional_id, producer_id, epoch, list(asked), adds=adds)
        except BrokerError as error:
            is_broker_refused = error.code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
            return dict.fromkeys(asked, ErrorCode.INVALID_TXN_STATE if is_broker_refused else error.code)
        is_busy = ErrorCode.CONCURRENT_TRANSACTIONS in codes.values()
        is_void = not all(producers.awaits_verdict(producer_id) for producers in asked.values())
        if not adds or not (is_busy or is_void) or attempt >= coordinators.attempts_max:
            return codes
        if is_busy:  # the coordinator may have waited for as long already
            await asyncio.sleep(max(0.0, coordinators.again_ms / 1000 - (now() - asked_at)))


def verdicts_at_hand(
    coordinators: Coordinators,
    transactional_id: str,
    producer: tuple[int, int],
    asked: Mapping[Place, ProducerStates],
) -> dict[Place, int] | None:
    """As `ask_for_verdicts` about partitions that the client has added; None where the coordinator is not here."""
    if coordinators.verifies:
        codes = coordinators.verified_here(transactional_id, producer, list(asked))
    else:
        codes = dict.fromkeys(asked, ErrorCode.NONE)
    if codes is not None:
        for producers in asked.values():
            producers.await_verdict(producer[0])
    return codes
