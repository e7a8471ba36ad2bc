"""The quota controller_mutation_rate as handlers use it: begun with the request, finished with its answer.

A broker that passes a request on gets the controller's `throttle_time_ms` with the answer, and holds its client back
for as long: the controller does not know the connection.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from kavka_broker.quotas.client_quotas import CONTROLLER_MUTATION
from kavka_broker.quotas.mutation_quota import Mutations
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.throttling import throttle


@contextmanager
def mutations_of(client: Client, broker: Broker, *, strict_from_version: int) -> Iterator[Mutations]:
    """Count what the client's request creates and deletes, and throttle the client for it.

    Versions below `strict_from_version` do not know THROTTLING_QUOTA_EXCEEDED: none of their requests is refused.
    """
    quota, clock = broker.quotas.mutations, broker.clock
    strict = client.version >= strict_from_version
    mutations = quota.begin(client.user, client.client_id, clock, strict=strict)
    try:
        yield mutations
    finally:
        hold(client, broker, quota.finish(mutations, int(clock.monotonic_ms())))


def hold(client: Client, broker: Broker, throttle_time_ms: int) -> None:
    """Throttle a client whose request the controller has counted, unless it has its answer already."""
    if throttle_time_ms > 0 and not client.is_answered:
        now_ms = int(broker.clock.monotonic_ms())
        throttle(client, broker, CONTROLLER_MUTATION, throttle_time_ms, now_ms)
