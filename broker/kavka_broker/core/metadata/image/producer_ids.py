"""Producer ids: given out by the cluster in blocks, so that a broker asks once in a thousand producers.

A block is never given twice. What a broker has not used of its block when it stops is lost, which is harmless: there
are 2^63 of them.
"""

from collections.abc import Iterator

from kavka_broker.protocol.messages.metadata.producer_ids_record import ProducerIdsRecord


class ProducerIds:
    """The first producer id that was given to no broker."""

    def __init__(self) -> None:
        self.next_producer_id = 0
        self._last: ProducerIdsRecord | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ProducerIds) and self._last == other._last

    __hash__ = None  # type: ignore[assignment]

    def copy(self) -> "ProducerIds":
        copy = ProducerIds()
        copy.next_producer_id = self.next_producer_id
        copy._last = self._last
        return copy

    def replay(self, record: ProducerIdsRecord) -> None:
        assert record.next_producer_id >= self.next_producer_id, "producer ids would be given out twice"
        self.next_producer_id = record.next_producer_id
        self._last = record

    def records(self) -> Iterator[ProducerIdsRecord]:
        if self._last is not None:
            yield self._last
