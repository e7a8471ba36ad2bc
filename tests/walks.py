"""How far a request walks through the house of the broker.

python -m tests.walks

A node runs in this process, with a profiler on its loop from the moment a request's bytes are sent until those of its
answer are here; it is a later one of its connection, whose client is known. Counted are calls of functions in files of
`kavka_broker`, the files and packages these are in, how often the next call is in another file, and how many of these
moves do not go from caller to called: the walk has come back to another file first. A climb is a call from a lower
layer into a higher one (`[tool.importlinter]`); the clock, which is handed in, is none. What threads do is not counted,
nor the client; the clock by which clients take turns stands, as the profiler's time is not theirs. Of several like
requests the shortest walk is told: timers of the node walk along now and then.
"""

import asyncio
import os
import re
import sys
import tempfile
import tomllib
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from struct import pack, unpack
from types import FrameType
from typing import Final

import kavka_broker
from kavka_broker.protocol.codec import encode
from kavka_broker.protocol.framing import RequestHeader, encode_request_header
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.api_versions_request import ApiVersionsRequest
from kavka_broker.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kavka_broker.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kavka_broker.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kavka_broker.runtime.environment import REAL
from tests.support.in_process import InProcess, batch, running
from tests.support.waiting import until

ROOT: Final = Path(__file__).parents[1]
HOUSE: Final = str(Path(kavka_broker.__file__).parent) + os.sep
CLOCK: Final = str(Path("runtime", "clock.py"))
REPETITIONS: Final = 15
Trip = tuple[str, Message, int]


def floors() -> dict[str, int]:
    """How high each package of the broker stands: 0 is the lowest layer."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    [layers] = (one["layers"] for one in settings["tool"]["importlinter"]["contracts"] if one["id"] == "layers")
    return {name: floor for floor, layer in enumerate(reversed(layers)) for name in re.findall(r"\w+", layer)}


FLOORS: Final = floors()


@dataclass(slots=True)
class Walk:
    """The way through the files."""

    house: str = HOUSE
    calls: int = 0
    moves: int = 0
    returns: int = 0
    climbs: int = 0
    files: set[str] = field(default_factory=set)
    entered: list[tuple[int, str]] = field(default_factory=list)  # each file once, behind how many others
    _at: str | None = None

    def step(self, frame: FrameType, event: str, _: object) -> None:
        """Take the profiler's word."""
        file = frame.f_code.co_filename
        if event != "call" or not file.startswith(self.house):
            return
        self.calls += 1
        if file not in self.files:
            self.files.add(file)
            self.entered.append((self._depth(frame, file), file.removeprefix(self.house)))
        caller = self._caller(frame)
        if self._at not in (None, file):
            self.moves += 1
            self.returns += caller != self._at
        if caller is not None and not file.endswith(CLOCK):
            self.climbs += self._floor(file) > self._floor(caller)
        self._at = file

    def _depth(self, frame: FrameType, file: str) -> int:
        """How many other files have called each other on the way to this one."""
        depth, at = 0, file
        while (caller := self._caller(frame)) is not None:
            depth += caller != at
            at = caller
            above = frame.f_back
            while above is not None and not above.f_code.co_filename.startswith(self.house):
                above = above.f_back
            assert above is not None
            frame = above
        return depth

    def _caller(self, frame: FrameType | None) -> str | None:
        while frame := frame and frame.f_back:
            if frame.f_code.co_filename.startswith(self.house):
                return frame.f_code.co_filename
        return None

    def _room(self, file: str) -> str:
        return file.removeprefix(self.house).partition(os.sep)[0]

    def _floor(self, file: str) -> int:
        return FLOORS.get(self._room(file).removesuffix(".py"), 0)

    @property
    def packages(self) -> set[str]:
        """The first folder, or the file, below the house."""
        return {self._room(file) for file in self.files}


@contextmanager
def walked(house: str = HOUSE) -> Iterator[Walk]:
    """The walk of what is done meanwhile in this thread."""
    walk = Walk(house)
    sys.setprofile(walk.step)
    try:
        yield walk
    finally:
        sys.setprofile(None)


def trips(topic_id: bytes, number: int) -> Iterator[Trip]:
    """What is asked, with its version."""
    data = TopicProduceData("t", topic_id, [PartitionProduceData(0, batch(b"one", timestamp_ms=1))])
    yield "Produce v13", ProduceRequest(None, -1, 10_000, [data]), 13
    place = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    yield "Fetch v13", FetchRequest(min_bytes=1, topics=[FetchTopic("t", topic_id, [place])]), 13
    yield "CreateTopics v7", CreateTopicsRequest([CreatableTopic(f"made-{number}", 1, 1)], 10_000), 7


async def walk_of(inside: InProcess, request: Message, version: int) -> Walk:
    """Send a request, and follow it until it is answered."""
    assert request.API_KEY is not None
    frame = encode_request_header(RequestHeader(request.API_KEY, version, 7, "walks")) + encode(request, version)
    listeners = list(inside.server.addresses)
    accepted = sum(one.accepted_count for one in listeners)
    reader, writer = await asyncio.open_connection("127.0.0.1", inside.server.advertised[0].port)
    await until(lambda: sum(one.accepted_count for one in listeners) > accepted)
    hello = encode_request_header(RequestHeader(ApiVersionsRequest.API_KEY, 0, 6, "walks"))
    await answered(reader, writer, hello)
    await asyncio.sleep(0.01)  # what it came with is done
    with walked() as walk:
        await answered(reader, writer, frame)
    writer.close()
    return walk


async def answered(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, frame: bytes) -> None:
    """Send a request, and wait for the whole of its answer."""
    writer.write(pack(">i", len(frame)) + frame)
    await reader.readexactly(*unpack(">i", await reader.readexactly(4)))


async def shortest(repetitions: int = REPETITIONS) -> AsyncIterator[tuple[str, Walk]]:
    """Each trip with the shortest of its walks."""
    found: dict[str, Walk] = {}
    with tempfile.TemporaryDirectory() as scratch:
        async with running(Path(scratch), world=replace(REAL, work_ns=lambda: 0)) as inside:
            topic_id = await inside.create("t")
            for number in range(repetitions):
                for name, request, version in trips(topic_id, number):
                    walk = await walk_of(inside, request, version)
                    found[name] = min(walk, found.get(name, walk), key=lambda one: one.calls)
    for name, walk in found.items():
        yield name, walk


async def main() -> None:
    print(f"{'trip':<16} {'calls':>6} {'files':>6} {'packages':>9} {'moves':>6} {'returns':>8} {'climbs':>7}")
    async for name, walk in shortest():
        counts = f"{walk.calls:>6,} {len(walk.files):>6} {len(walk.packages):>9}"
        row = f"{counts} {walk.moves:>6,} {walk.returns:>8,} {walk.climbs:>7,}"
        print(f"{name:<16} {row}")


if __name__ == "__main__":
    asyncio.run(main())
