"""Requests of every API with anything in them, to a broker and to a controller in this process.

Each is answered, or its connection closed, and nothing else happens. Each round plays with a new node: many requests
change it.
"""

import asyncio
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from random import Random
from struct import pack
from typing import Any, Final

from kavka_broker.core.authorization.settings import STANDARD
from kavka_broker.core.metadata.decide.features import UpdateFeature, update_features
from kavka_broker.dispatch.handlers import load
from kavka_broker.protocol.codec import decode, encode
from kavka_broker.protocol.framing import RequestHeader, encode_request_header, read_response_header
from kavka_broker.protocol.message import Message, Struct
from kavka_broker.protocol.messages.api_versions_response import ApiVersionsResponse
from kavka_broker.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from kavka_broker.protocol.messages.envelope_request import EnvelopeRequest
from kavka_broker.protocol.records.batch import set_crc
from kavka_broker.protocol.records.compression import Compression
from kavka_broker.request.registry import APIS, Api, Role
from tests.property.protocol.building import Seeded, build
from tests.support.in_process import Client, InProcess, batch, running

ROUND: Final = 1_000
PARTITIONS: Final = 3
ANSWER_SECONDS_MAX: Final = 60
API_VERSIONS: Final = 18
#: What an honest operator asks of a node that shall leave: any later request of the round would be refused.
OF_LEAVING: Final = frozenset({64, 81})
NAMES: Final = (
    "t",
    "u",
    "g",
    "h",
    "m",
    "n",
    "tx",
    "",
    "1",
    "User:a",
    "consumer",
    "__consumer_offsets",
    "cleanup.policy",
)
LIKELY_SHARE: Final = 0.8
SPOILT_SHARE: Final = 0.1
LONG_SHARE: Final = 0.02
#: As long as a name may be on the wire, also in characters of two bytes; and what no topic may be called.
LONG_NAMES: Final = ("n" * 32_767, "\u00e9" * 16_383, "a/" * 8_000, "." * 250)
TIMES_MS: Final = (-1, 0, 3, 10)
#: Sessions and rebalances may be as short as the requests say, so that nobody waits for one.
SETTINGS: Final = {
    "group.min.session.timeout.ms": "1",
    "group.initial.rebalance.delay.ms": "0",
}


class Likely(Seeded):
    """Choices that often fit: names, ids, numbers and records that the broker knows."""

    def __init__(self, seed: int, topic_id: bytes) -> None:
        super().__init__(seed)
        self._topic_id = topic_id

    def integer(self, low: int, high: int) -> int:
        if self.chance.random() < LIKELY_SHARE:
            return self.chance.randint(max(low, -2), min(high, 12))
        return super().integer(low, high)

    def text(self) -> str:
        if self.chance.random() < LONG_SHARE:
            return self.chance.choice(LONG_NAMES)
        return self.chance.choice(NAMES) if self.chance.random() < LIKELY_SHARE else super().text()

    def blob(self, size: int | None) -> bytes:
        """Often the id of a topic; sometimes what a consumer says of itself to its group."""
        if size == 16 and self.chance.random() < LIKELY_SHARE:
            return self._topic_id
        if size is None and self.chance.random() < LIKELY_SHARE / 2:
            version = self.chance.randint(*ConsumerProtocolSubscription.VERSIONS)
            said = encode(build(ConsumerProtocolSubscription, version, self), version)
            return pack(">h", version) + said[: self.chance.choice((len(said), len(said), len(said) // 2))]
        return super().blob(size)

    def records(self) -> bytes:
        """A batch, often a good one: of a producer or of none, in a transaction or in none."""
        if self.chance.random() > LIKELY_SHARE:
            return super().records()
        options: dict[str, Any] = {"timestamp_ms": -1, "compression": self.chance.choice(list(Compression))}
        if self.chance.random() < 0.5:
            options |= {"producer_id": self.integer(0, 9), "producer_epoch": 0, "base_sequence": self.integer(0, 9)}
            options["transactional"] = self.chance.random() < 0.5
        made = bytearray(batch(*(self.chance.randbytes(3) for _ in range(self.chance.randint(1, 3))), **options))
        if self.chance.random() < SPOILT_SHARE * 2:
            made[self.chance.randrange(len(made))] = self.chance.randrange(256)
            if self.chance.random() < 0.5:
                set_crc(made)
        return bytes(made)


@dataclass(frozen=True, slots=True)
class Sent:
    """One request as it goes out."""

    key: int
    version: int
    frame: bytes


def frame(number: int, topic_id: bytes, apis: list[Api]) -> Sent:
    """The request of this number."""
    chance = Random(f"any request {number}")
    api = chance.choice(apis)
    version = chance.randint(*api.versions)
    likely = Likely(number, topic_id)
    message: Message = build(api.request, version, likely)
    hasten(message, chance)
    if isinstance(message, EnvelopeRequest) and chance.random() < LIKELY_SHARE:
        message.request_data = frame(number + 1, topic_id, [one for one in apis if one.key != message.API_KEY]).frame
    encoded = bytearray(encode(message, version))
    if encoded and chance.random() < SPOILT_SHARE:
        for _ in range(chance.randint(1, 3)):
            encoded[chance.randrange(len(encoded))] = chance.randrange(256)
    client_id = chance.choice(LONG_NAMES) if chance.random() < LONG_SHARE else "any"
    return Sent(api.key, version, encode_request_header(RequestHeader(api.key, version, 7, client_id)) + bytes(encoded))


def hasten(message: Struct, chance: Random) -> None:
    """Give every wait that the request asks for a short end."""
    for name in message.__match_args__:
        value = getattr(message, name)
        if name.endswith(("timeout_ms", "max_wait_ms")) and isinstance(value, int):
            setattr(message, name, chance.choice(TIMES_MS))
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, Struct) and type(item).__setattr__ is object.__setattr__:
                hasten(item, chance)


class Asker:
    """A connection that is opened again whenever the node has closed it."""

    def __init__(self, inside: InProcess, *, to_controller: bool, source: str) -> None:
        self._inside, self._to_controller, self._source = inside, to_controller, source
        self._client: Client | None = None
        self.counts: Counter[str] = Counter()

    async def ask(self, sent: Sent) -> None:
        """Send a request, and a question for versions behind it: a Produce with acks 0 has no answer of its own."""
        if self._client is None:
            self._client = await self._inside.connect(to_controller=self._to_controller, source=self._source)
        versions = encode_request_header(RequestHeader(API_VERSIONS, 0, 8, "any"))
        for request in (sent.frame, versions):
            self._client.writer.write(pack(">i", len(request)) + request)
        try:
            async with asyncio.timeout(ANSWER_SECONDS_MAX):
                while not await self._is_answered(self._client, sent):
                    pass
        except (asyncio.IncompleteReadError, ConnectionError):
            self.counts["closed"] += 1
            self._client.close()
            self._client = None

    async def _is_answered(self, client: Client, sent: Sent) -> bool:
        """Read one answer. Returns whether it was that to the question for versions."""
        size = int.from_bytes(await client.reader.readexactly(4), "big")
        answer = memoryview(await client.reader.readexactly(size))
        if int.from_bytes(answer[:4], "big") == 8:
            decode(ApiVersionsResponse, 0, answer[4:])
            return True
        _, body = read_response_header(sent.key, sent.version, answer)
        decode(APIS[sent.key].response, sent.version, answer[body:])
        self.counts["answered"] += 1
        self.counts[f"key {sent.key}"] += 1
        return False


async def play(directory: Path, numbers: range, role: Role, *, with_rights: bool) -> Counter[str]:
    """Send the requests of these numbers to a new node, as a client that may do everything or as one that may do
    nothing; by key, how many were answered.
    """
    apis = [api for key, api in sorted(load().items()) if role in api.on and key not in OF_LEAVING]
    rules = {} if with_rights else {"authorizer.class.name": STANDARD, "super.users": "User:nobody"}
    async with running(directory, {**SETTINGS, **rules}) as inside:
        raised = [UpdateFeature(f"{name}.version", 1) for name in ("share", "streams")]
        await inside.broker.active.submit(lambda metadata, _: update_features(metadata, raised))
        topic_id = await inside.create("t", PARTITIONS)
        asker = Asker(inside, to_controller=role == "controller", source="127.0.0.1")
        for number in numbers:
            await asker.ask(frame(number, topic_id, apis))
        return asker.counts
