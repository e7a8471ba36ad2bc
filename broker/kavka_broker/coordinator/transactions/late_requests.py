"""Refuses requests of producers of transaction version 1 that come over connections which these have given up."""

from kavka_broker.core.transaction.connections import is_late, note_sender
from kavka_broker.core.transaction.state import Transaction
from kavka_broker.logs import get
from kavka_broker.protocol.errors import BrokerError, ErrorCode

log = get("coordinator")


class LateRequestError(BrokerError):
    """A request has come over a connection that its producer has given up. The connection closes: a producer that uses
    it all the same asks again over another one, which is the latest then.
    """

    def __init__(self, transactional_id: str) -> None:
        self.reason = (
            f"it was given up by the producer of transactional id {transactional_id!r}, which has asked over a later"
            " one (kavka.transaction.connection.verification.enable)"
        )
        super().__init__(ErrorCode.NOT_COORDINATOR, self.reason)


class LateRequests:
    """Knows which connections producers ask over, in their `Transaction`, and counts what it has `refused`."""

    def __init__(self, *, is_on: bool) -> None:
        self.refused = 0
        self._is_on = is_on

    def check(self, transaction: Transaction | None, producer: tuple[int, int], connection: int) -> None:
        """Check a request of a producer (id and epoch), and note its connection. Raises LateRequestError."""
        if transaction is None or not self._is_on:
            return
        if is_late(transaction, producer, connection):
            self.refused += 1
            transactional_id = transaction.transactional_id
            log.warning("late_request.refused", transactional_id=transactional_id, producer_id=producer[0])
            raise LateRequestError(transactional_id)
        note_sender(transaction, producer, connection)
