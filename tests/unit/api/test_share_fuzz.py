"""Requests of share groups with anything in them: each is answered, or its connection closed, and nothing else happens.

`python -m tests.unit.api.test_share_fuzz 100000` plays so many of them.
"""

import asyncio
import logging
import sys
import tempfile
from collections import Counter
from pathlib import Path
from random import Random
from struct import pack
from typing import Any, Final

import pytest

from kavka_broker.protocol.codec import decode, encode
from kavka_broker.protocol.framing import RequestHeader, encode_request_header, read_response_header
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.share_acknowledge_request import ShareAcknowledgeRequest
from kavka_broker.protocol.messages.share_fetch_request import ShareFetchRequest
from kavka_broker.request.registry import APIS
from tests.property.protocol.building import Seeded, build
from tests.support.drawn import commit
from tests.support.in_process import InProcess, batch, running
from tests.unit.api.test_share_fetch import initialize

KEYS: Final = (76, 77, 78, 79, 83, 84, 85, 86, 87, 90, 91, 92)
INPUTS: Final = 600
PARTITIONS: Final = 3
RECORDS_EACH: Final = 10
ANSWERED_SHARE_MIN: Final = 0.5


class Likely(Seeded):
    """Choices that often fit: names, ids and numbers that the broker knows."""

    def __init__(self, seed: int, topic_id: bytes) -> None:
        super().__init__(seed)
        self._topic_id = topic_id

    def integer(self, low: int, high: int) -> int:
        return (
            self.chance.randint(max(low, -2), min(high, 12))
            if self.chance.random() < 0.8
            else super().integer(low, high)
        )

    def text(self) -> str:
        return self.chance.choice(("g", "h", "m", "n", "t", "")) if self.chance.random() < 0.8 else super().text()

    def blob(self, size: int | None) -> bytes:
        return self._topic_id if size == 16 and self.chance.random() < 0.8 else super().blob(size)


def frame(number: int, topic_id: bytes) -> tuple[int, int, bytes]:
    """The key, the version and the bytes of a request."""
    chance = Random(f"share request {number}")
    key = chance.choice(KEYS)
    api = APIS[key]
    version = chance.randint(*api.versions)
    message: Message = build(api.request, version, Likely(number, topic_id))
    if isinstance(message, ShareFetchRequest | ShareAcknowledgeRequest):
        make_likely(message, chance)
    encoded = bytearray(encode(message, version))
    if chance.random() < 0.1:
        for _ in range(chance.randint(1, 3)):
            encoded[chance.randrange(len(encoded))] = chance.randrange(256)
    return key, version, encode_request_header(RequestHeader(key, version, 7, "fuzz")) + bytes(encoded)


def make_likely(message: ShareFetchRequest | ShareAcknowledgeRequest, chance: Random) -> None:
    """Give most requests what those of a session have: otherwise hardly one would acquire anything."""
    is_fetch = isinstance(message, ShareFetchRequest)
    if isinstance(message, ShareFetchRequest):
        message.max_wait_ms = chance.choice((-1, 0, 3, 10))
    if chance.random() < 0.2:
        return
    message.group_id, message.member_id = "g", chance.choice("mn")
    message.share_session_epoch = chance.choice((0, 0, 1, 2, -1)) if is_fetch else chance.choice((1, 2, 3, -1))
    for topic in message.topics:
        for partition in topic.partitions:
            partition.partition_index %= PARTITIONS
            if message.share_session_epoch == 0:
                partition.acknowledgement_batches = []
    if isinstance(message, ShareFetchRequest):
        message.is_renew_ack, message.share_acquire_mode = False, chance.choice((0, 1))
        message.max_bytes, message.min_bytes, message.max_records = 1 << 20, 1, chance.choice((1, 2, 500))


class Asker:
    """A connection that is opened again whenever the broker has closed it."""

    def __init__(self, inside: InProcess) -> None:
        self._inside = inside
        self._client: Any = None
        self.counts: Counter[str] = Counter()

    async def ask(self, key: int, version: int, request: bytes) -> Message | None:
        """Send a request. Returns the answer; None where the broker has closed the connection."""
        if self._client is None:
            self._client = await self._inside.connect()
        self._client.writer.write(pack(">i", len(request)) + request)
        try:
            async with asyncio.timeout(60):
                size = int.from_bytes(await self._client.reader.readexactly(4), "big")
                answer = memoryview(await self._client.reader.readexactly(size))
        except (asyncio.IncompleteReadError, ConnectionError):
            self.counts["closed"] += 1
            self._client.close()
            self._client = None
            return None
        _, body = read_response_header(key, version, answer)
        self.counts["answered"] += 1
        return decode(APIS[key].response, version, answer[body:])


async def play(directory: Path, numbers: range) -> Counter[str]:
    async with running(directory) as inside:
        topic_id = await inside.create("t", PARTITIONS)
        await initialize(inside, topic_id)
        asker = Asker(inside)
        for number in numbers:
            if number % RECORDS_EACH == 0:  # groups begin at the end
                leader = inside.broker.partitions.leader("t", number // RECORDS_EACH % PARTITIONS)
                leader.append(memoryview(bytearray(batch(b"a", b"b", b"c"))), -1)
            await asker.ask(*frame(number, topic_id))
        sharing = inside.broker.as_broker.sharing
        fetches = sharing.fetches
        asker.counts["sessions"] = len(fetches.sessions.by_key)
        asker.counts["acquired"] = fetches.counts.total.by_event["acquired"]
        asker.counts["states"] = sum(len(shard.states.by_key) for shard in sharing.coordinator.shards)
        return asker.counts


def test_any_request_is_answered_or_its_connection_closed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    first = int(commit()[:6], 16) * INPUTS
    counts = asyncio.run(play(tmp_path, range(first, first + INPUTS)))
    assert counts["answered"] > ANSWERED_SHARE_MIN * INPUTS
    assert counts["states"] > 0
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR or record.exc_info]


if __name__ == "__main__":
    logging.basicConfig(level=logging.ERROR)
    with tempfile.TemporaryDirectory() as scratch:
        print(asyncio.run(play(Path(scratch), range(int(sys.argv[1])))))
