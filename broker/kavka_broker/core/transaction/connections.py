"""Late requests of producers of transaction version 1, told by the connections that they come on.

Such a producer has one epoch for all its transactions. A request that was held up on a connection which the producer
has given up may arrive within its next transaction, and end that half-way. The epoch cannot tell (KIP-890 gives each
transaction one of its own), but the connection can: a producer asks its coordinator over one connection at a time, so
once it has asked over one, what comes over another that was accepted earlier is late.

What is known is lost with the leadership of the partition, and a transaction that has moved here is not protected
before its producer asks again.
"""

from typing import Final

from kavka_broker.core.transaction.state import Sender, Transaction

__all__ = ["NO_CONNECTION", "is_late", "note_sender"]

NO_CONNECTION: Final = 0
"""That of requests which no producer of transaction version 1 has sent."""


def is_late(transaction: Transaction, producer: tuple[int, int], connection: int) -> bool:
    """Whether this producer has asked over a later connection already."""
    sender = transaction.sender
    return (
        connection != NO_CONNECTION
        and sender is not None
        and sender.producer == producer
        and connection < sender.connection
    )


def note_sender(transaction: Transaction, producer: tuple[int, int], connection: int) -> None:
    """Note the connection of the present producer; what others ask for is refused by their epochs."""
    standing = transaction.standing
    if connection != NO_CONNECTION and producer == (standing.producer_id, standing.producer_epoch):
        transaction.sender = Sender(producer, connection)
