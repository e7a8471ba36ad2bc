"""Sends requests, and those that count in the quota controller_mutation_rate over a connection of their own.

A broker that holds the operator by that quota mutes the connection on which it says so, for seconds or minutes. Looks
at the cluster, and changes that no quota counts, go on over the other connection.
"""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import kafka.errors
from kafka.admin import KafkaAdminClient

from kavka_operator.kafka.admin import ThrottledError

Send = Callable[[Any], Any]
"""Sends a request to any node, and returns its answer."""
SendTo = Callable[[Any, int | None], Any]
"""Sends a request to a node, by its id, or to any for None."""

NOT_SENT_SECONDS_MAX: Final = 2.0
POLL_SECONDS: Final = 0.05
NOT_SENT: Final = (kafka.errors.NodeNotReadyError, kafka.errors.KafkaConnectionError)


def sent(client: KafkaAdminClient, request: Any, node: int | None = None) -> Any:
    """The answer of a node, or of any node. A request that could not be sent is retried for up to 2 s."""

    async def exchange() -> Any:
        return await client._manager.send(request, node_id=node)

    deadline = time.monotonic() + NOT_SENT_SECONDS_MAX
    while True:
        try:
            return client._manager.run(exchange)
        except NOT_SENT:
            if time.monotonic() > deadline:
                raise
            time.sleep(POLL_SECONDS)


class Mutations:
    """Sends what creates and deletes partitions, and knows until when the cluster takes no more of it."""

    def __init__(self, connect: Callable[[], KafkaAdminClient]) -> None:
        self._connect = connect
        self._client: KafkaAdminClient | None = None
        self._held_until = 0.0  # by the monotonic clock
        self._words = ""

    def send(self, request: Any) -> Any:
        """The answer of any node. Raises ThrottledError while the quota holds the operator."""
        if time.monotonic() < self._held_until:
            raise ThrottledError(self._words)
        if self._client is None:
            self._client = self._connect()
        answer = sent(self._client, request)
        if answer.throttle_time_ms:
            self._hold(answer.throttle_time_ms / 1000)
        return answer

    def _hold(self, seconds: float) -> None:
        until = datetime.now(UTC) + timedelta(seconds=seconds)
        self._held_until = time.monotonic() + seconds
        self._words = (
            f"waits until {until:%H:%M:%S}Z: the quota controller_mutation_rate holds the operator;"
            " a ClientQuota that sets it has the condition HoldsOperator"
        )

    def close(self) -> None:
        """Let go of the connection."""
        if self._client is not None:
            self._client.close()
