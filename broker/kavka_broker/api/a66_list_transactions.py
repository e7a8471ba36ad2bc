"""ListTransactions (66): the transactional ids that this broker coordinates, by state, producer, or age.

- COORDINATOR_LOAD_IN_PROGRESS while some partition of `__transaction_state` is being read.
- Filters are joined by "and"; states that nobody knows are named in the answer.
Versions: flexible; running for longer than a duration from 1. Patterns of ids, in 2, are not served: they would be
searched for on the loop.
"""

import asyncio
from collections.abc import Callable

from kavka_broker.core.transaction.state import Transaction
from kavka_broker.core.transaction.state import TransactionState as State
from kavka_broker.loop.slices import Pace, Work
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages.list_transactions_request import ListTransactionsRequest
from kavka_broker.protocol.messages.list_transactions_response import ListTransactionsResponse, TransactionState
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.registry import SMALL_BYTES_MAX, api

STATES = {state.title: state for state in State}


@api(ListTransactionsRequest, ListTransactionsResponse, versions=(0, 1), bytes_max=SMALL_BYTES_MAX)
def list_transactions(
    request: ListTransactionsRequest, broker: Broker, client: Client
) -> ListTransactionsResponse | asyncio.Task[ListTransactionsResponse]:
    del client
    if broker.transactions.is_loading:
        return ListTransactionsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    return broker.slices.run(list_all(request, broker))


def list_all(request: ListTransactionsRequest, broker: Broker) -> Work[ListTransactionsResponse]:
    unknown = [name for name in request.state_filters if name not in STATES]
    answer, pace = ListTransactionsResponse(unknown_state_filters=unknown), Pace()
    is_wanted = filter_of(request, broker.clock.now_ms())
    for shard in broker.transactions.shards():
        for transaction in list(shard.transactions.values()):
            if is_wanted(transaction):
                standing = transaction.standing
                answer.transaction_states.append(
                    TransactionState(transaction.transactional_id, standing.producer_id, standing.state.title)
                )
            if pace.spent(1):
                yield
    return answer


def filter_of(request: ListTransactionsRequest, now_ms: int) -> Callable[[Transaction], bool]:
    states = {STATES[name] for name in request.state_filters if name in STATES}
    producer_ids = set(request.producer_id_filters)

    def is_wanted(transaction: Transaction) -> bool:
        standing = transaction.standing
        return (
            (not request.state_filters or standing.state in states)
            and (not producer_ids or standing.producer_id in producer_ids)
            and (request.duration_filter < 0 or now_ms - standing.started_ms > request.duration_filter)
        )

    return is_wanted
