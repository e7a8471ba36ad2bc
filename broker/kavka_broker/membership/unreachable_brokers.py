"""Brokers that have just broken a connection: they may be dead, and the metadata may be about to say so.

When a broker is killed its clients notice at the same moment as its followers and the controller do. A client asks
another broker at once who leads now, and some milliseconds later the controller has fenced the dead one. An answer in
between names the dead leader again; clients then wait a second or more before they ask once more (librdkafka looks for
lost leaders once a second). So an answer about leaders waits while somebody is suspected: until the image has new word
of the suspect, until a connection to it stands again, or for `DOUBT_MS_MAX`. A broker that stops in a controlled way is
fenced before its connections break, and is not suspected.

As long as all connections stand no answer waits, except for the turns of the loop in which a loss that has arrived
already is heard. A process that is killed closes its connections in the order in which they were opened, and ours
were among the first: what its clients notice has been said to us before, though the loop may come to it later.

This delays answers and never changes one: nothing depends on it but the length of the gap.
"""

import asyncio
from collections.abc import Sequence
from typing import Final

from kavka_broker.logs import get
from kavka_broker.loop.timers import Timer, Timers
from kavka_broker.membership.metadata_feed import MetadataFeed
from kavka_broker.protocol.message import Message

log = get("membership")

DOUBT_MS_MAX: Final = 500
TURNS: Final = 2
"""The loop reads a connection's end in one turn and reports it in the next; the request may be read before either."""


class Suspects:
    """Suspected brokers by id, with the broker epoch and the timer that ends it. Bounded by the number of brokers."""

    def __init__(self, node_id: int, image: MetadataFeed, timers: Timers) -> None:
        self._node_id = node_id
        self._metadata = image.metadata
        self._timers = timers
        self._suspects: dict[int, tuple[int, Timer]] = {}
        self._doubt: asyncio.Future[None] | None = None
        image.subscribers.append(self._replayed)

    async def cleared(self) -> None:
        """Wait while a broker is suspected, and until the losses that have already arrived are read."""
        for _ in range(TURNS):
            await asyncio.sleep(0)
        if self._doubt is not None:
            # Shielded: a client that goes away must not end the doubt for the others.
            await asyncio.shield(self._doubt)

    def lost(self, host: str, port: int) -> None:
        """Suspect the brokers at this address: the other side has broken a connection to it."""
        for broker_id in self._at(host, port):
            self._suspect(broker_id)

    def _suspect(self, broker_id: int) -> None:
        broker = self._metadata.brokers.get(broker_id)
        if broker is None or not broker.usable or broker_id == self._node_id or broker_id in self._suspects:
            return
        timer = self._timers.after(DOUBT_MS_MAX, self._clear, broker_id)
        self._suspects[broker_id] = (broker.epoch, timer)
        if self._doubt is None:
            self._doubt = asyncio.get_running_loop().create_future()

    def alive(self, host: str, port: int) -> None:
        """Clear the brokers at this address: a connection to it stands."""
        if self._suspects:
            for broker_id in self._at(host, port):
                self._clear(broker_id)

    def _at(self, host: str, port: int) -> list[int]:
        """The nodes that listen at this address, as brokers or as controllers."""
        brokers = [
            broker.broker_id
            for broker in self._metadata.brokers
            if any((endpoint.host, endpoint.port) == (host, port) for endpoint in broker.endpoints.values())
        ]
        return brokers + [
            controller.controller_id
            for controller in self._metadata.brokers.controllers()
            if any((endpoint.host, endpoint.port) == (host, port) for endpoint in controller.end_points)
        ]

    def _replayed(self, _: Sequence[Message]) -> None:
        for broker_id, (epoch, _timer) in list(self._suspects.items()):
            broker = self._metadata.brokers.get(broker_id)
            if broker is None or broker.epoch != epoch or not broker.usable:
                self._clear(broker_id)

    def _clear(self, broker_id: int) -> None:
        suspect = self._suspects.pop(broker_id, None)
        if suspect is None:
            return
        suspect[1].cancel()
        if not self._suspects and self._doubt is not None:
            doubt, self._doubt = self._doubt, None
            doubt.set_result(None)
