"""ListTransactions (66): the transactional ids that this broker coordinates, by state, producer, or age.

- COORDINATOR_LOAD_IN_PROGRESS while some partition of `__transaction_state` is being read.
- Filters are joined by "and"; states that nobody knows are named in the answer.
- A pattern matches the whole of an id, by RE2; one that cannot be read is INVALID_REGULAR_EXPRESSION.
Versions: flexible; running for longer than a duration from 1, a pattern of ids from 2.
"""

import asyncio
from collections.abc import Callable

from kavka_broker.core.regular_expressions import MATCH_MICROSECONDS, TEXT_CHARACTERS_MAX, Pattern, PatternError
from kavka_broker.core.transaction.state import Transaction
from kavka_broker.core.transaction.state import TransactionState as State
from kavka_broker.loop.slices import Cost, Work
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages.list_transactions_request import ListTransactionsRequest
from kavka_broker.protocol.messages.list_transactions_response import ListTransactionsResponse, TransactionState
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.registry import SMALL_BYTES_MAX, api, listing

STATES = {state.title: state for state in State}
ID_CHARACTERS_MAX = 32_767  # of a string in a request


@api(ListTransactionsRequest, ListTransactionsResponse, versions=(0, 2), bytes_max=SMALL_BYTES_MAX)
@listing
def list_transactions(
    request: ListTransactionsRequest, broker: Broker, client: Client
) -> ListTransactionsResponse | asyncio.Task[ListTransactionsResponse]:
    del client
    if broker.transactions.is_loading:
        return ListTransactionsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    text = request.transactional_id_pattern
    try:
        pattern = Pattern.compile(text) if text else None
    except PatternError:
        return ListTransactionsResponse(error_code=ErrorCode.INVALID_REGULAR_EXPRESSION)
    return broker.slices.run(list_all(request, pattern, broker))


def list_all(
    request: ListTransactionsRequest, pattern: Pattern | None, broker: Broker
) -> Work[ListTransactionsResponse]:
    unknown = [name for name in request.state_filters if name not in STATES]
    answer, cost = ListTransactionsResponse(unknown_state_filters=unknown), Cost()
    is_wanted = filter_of(request, pattern, broker.clock.now_ms())
    for shard in broker.transactions.shards():
        for transaction in list(shard.transactions.values()):
            if is_wanted(transaction):
                standing = transaction.standing
                answer.transaction_states.append(
                    TransactionState(transaction.transactional_id, standing.producer_id, standing.state.title)
                )
            if cost.add(1 if pattern is None else matching_cost(transaction)):
                yield
    return answer


def matching_cost(transaction: Transaction) -> int:
    """Return the greatest cost of a pattern with this id."""
    return MATCH_MICROSECONDS * (1 + len(transaction.transactional_id) // TEXT_CHARACTERS_MAX)


def filter_of(request: ListTransactionsRequest, pattern: Pattern | None, now_ms: int) -> Callable[[Transaction], bool]:
    states = {STATES[name] for name in request.state_filters if name in STATES}
    producer_ids = set(request.producer_id_filters)

    def is_wanted(transaction: Transaction) -> bool:
        standing = transaction.standing
        return (
            (not request.state_filters or standing.state in states)
            and (not producer_ids or standing.producer_id in producer_ids)
            and (request.duration_filter < 0 or now_ms - standing.started_ms > request.duration_filter)
            and (pattern is None or pattern.matches(transaction.transactional_id, ID_CHARACTERS_MAX))
        )

    return is_wanted
