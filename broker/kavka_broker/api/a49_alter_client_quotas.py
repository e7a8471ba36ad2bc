"""AlterClientQuotas (49): set and remove limits of users, client ids, pairs of both, and addresses (KIP-546).

- A null name is the default of its type. A name is never read as a default, be it "default" or "<default>".
- Keys: producer_byte_rate, consumer_byte_rate, request_percentage, controller_mutation_rate; of an ip only
  connection_creation_rate. Beside these, keys of Kavka's own (`core.quota.entity_limits`). Another key, or a limit that
  is not above 0, is INVALID_REQUEST.
- An ip is an address, or the name of a host that the controller finds; brokers ask for its addresses themselves.
- An entity changes whole or not at all, and each for itself. Removing what is not set is fine.
- `validate_only` says what would happen, and nothing does. A change holds from the next request on, on every broker.
Versions: flexible from 1.
"""

import asyncio
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from itertools import islice
from typing import Final

from kavka_broker.core.decision import Decision
from kavka_broker.core.metadata.decide.quotas import Alteration, alter
from kavka_broker.core.metadata.image.metadata import Metadata
from kavka_broker.core.metadata.image.quotas import IP
from kavka_broker.core.quota.resolve import is_address
from kavka_broker.protocol.errors import BrokerError
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.alter_client_quotas_request import AlterClientQuotasRequest
from kavka_broker.protocol.messages.alter_client_quotas_response import (
    AlterClientQuotasResponse,
    EntityData,
    EntryData,
)
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.registry import BOTH, api
from kavka_broker.request.split_requests import Each

HOSTS_MAX: Final = 16  # of a request; more are refused
FIND_SECONDS_MAX: Final = 5.0


@api(
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    versions=(0, 1),
    on=BOTH,
    forwarded=True,
    each=(Each("entries", "entries", per_turn=100),),
)
async def alter_client_quotas(
    request: AlterClientQuotasRequest, broker: Broker, client: Client
) -> AlterClientQuotasResponse:
    del client
    alterations = [
        Alteration(
            [(part.entity_type, part.entity_name) for part in entry.entity],
            [(op.key, None if op.remove else op.value) for op in entry.ops],
        )
        for entry in request.entries
    ]

    hosts = await found_of(alterations)

    def decide(metadata: Metadata, _: int) -> Decision[list[EntryData]]:
        decision = alter_all(metadata, alterations, hosts)
        return Decision([], decision.response) if request.validate_only else decision

    try:
        return AlterClientQuotasResponse(entries=await broker.active.submit(decide))
    except BrokerError as error:
        return AlterClientQuotasResponse(entries=[answered(alteration, error) for alteration in alterations])


async def found_of(alterations: Sequence[Alteration]) -> AbstractSet[str]:
    """The names of hosts among the addresses for which addresses are found."""
    names = dict.fromkeys(
        name for entry in alterations for kind, name in entry.parts if kind == IP and name and not is_address(name)
    )
    return {name for name in islice(names, HOSTS_MAX) if await is_found(name)}


async def is_found(host: str) -> bool:
    """Whether a host of this name is known, and told in time."""
    try:
        async with asyncio.timeout(FIND_SECONDS_MAX):
            return bool(await asyncio.get_running_loop().getaddrinfo(host, None))
    except (OSError, UnicodeError):
        return False


def alter_all(
    metadata: Metadata, alterations: Sequence[Alteration], hosts: AbstractSet[str] = frozenset()
) -> Decision[list[EntryData]]:
    """The records of each entity, or the reason why it stays as it is."""
    records: list[Message] = []
    answers = []
    for alteration in alterations:
        try:
            records += alter(metadata.quotas, alteration, hosts).records
            answers.append(answered(alteration))
        except BrokerError as reason:
            answers.append(answered(alteration, reason))
    return Decision(records, answers)


def answered(alteration: Alteration, reason: BrokerError | None = None) -> EntryData:
    parts = [EntityData(kind, name) for kind, name in alteration.parts]
    return EntryData(0, None, parts) if reason is None else EntryData(reason.code, reason.message, parts)
