"""Consumers of old, which name topics by name in their fetch sessions: any number, and such as do not exist.

| rule | broken where |
|---|---|
| NamesAreBounded | sessions remember more names than the broker has room for |
| NamesAreGivenBack | names that clients have given up leave no room for others, once all is quiet |

A name takes as much room as an interpreter wants for it. Names here are so long, and the room such, that the same
number fits on each.
"""

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.fetch_epochs import EPOCH_NEW, NO_SESSION
from kavka_broker.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from kavka_broker.protocol.messages.fetch_response import FetchResponse
from kavka_broker.replica.serving import fetch_sessions
from tests.sim.clients import Client
from tests.sim.node import CLIENT_PORT, Node
from tests.sim.rushing import Line
from tests.sim.workloads import Workload

VERSION: Final = 12  # the last that names topics by name
EPOCH_FINAL: Final = -1  # of a session that ends
NAME_CHARACTERS: Final = 1_000
NAMES_MAX: Final = 19
NAMES_BYTES: Final = NAMES_MAX * (NAME_CHARACTERS + 50)
NAMED_MAX: Final = 6  # by one request
FETCHES_MAX: Final = 4  # of a session that its client stays with
LEFT_MAX: Final = 3  # sessions of one client at a node that it has left behind
ENDS_SHARE: Final = 0.6  # of the sessions, whose clients end them
ANSWER_SECONDS_MAX: Final = 5.0
Where = tuple[int, int]  # a node, and the number of its start


@contextmanager
def names_up_to(size_bytes: int) -> Iterator[None]:
    """Let the sessions of all nodes remember so many bytes of names."""
    before, fetch_sessions.NAMES_BYTES_MAX = fetch_sessions.NAMES_BYTES_MAX, size_bytes
    try:
        yield
    finally:
        fetch_sessions.NAMES_BYTES_MAX = before


def sessions_of(node: Node) -> dict[int, Any]:
    """Those of a node that serves, by id."""
    return {**node.broker.fetches.sessions.sessions}


def names_kept(node: Node) -> int:
    """How many long names its sessions remember, counted by what they hold."""
    keys = [key for session in sessions_of(node).values() for key in session.partitions]
    return sum(isinstance(topic, str) and len(topic) == NAME_CHARACTERS for topic, _ in keys)


def fetch(session_id: int, epoch: int, names: Iterable[str] = (), given_up: Iterable[str] = ()) -> FetchRequest:
    return FetchRequest(
        session_id=session_id,
        session_epoch=epoch,
        topics=[FetchTopic(topic=name, partitions=[FetchPartition(0)]) for name in names],
        forgotten_topics_data=[ForgottenTopic(topic=name, partitions=[0]) for name in given_up],
        max_wait_ms=0,
    )


class Namer(Client):
    """Opens a session after the other, at nodes that are drawn. Most it ends, others it leaves behind for a while."""

    is_stopping = False
    workload: "NamedSessions"

    async def run(self) -> None:
        self.opened = self.refused = self._count = 0
        self._left: dict[Where, list[int]] = {}
        while not self.is_stopping:
            node = self.random.choice(self.workload.simulation.nodes)
            try:
                async with asyncio.timeout(ANSWER_SECONDS_MAX):
                    _, line = await self.loop.create_connection(Line, node.host, CLIENT_PORT)
                    try:
                        await self._stay(line, node)
                    finally:
                        line.close()
            except OSError:  # of which TimeoutError is one
                await self.pause()
            await self.rest(0.02, 0.3)

    async def _stay(self, line: Line, node: Node) -> None:
        left = self._left.setdefault((node.node_id, node.lives), [])
        if len(left) >= LEFT_MAX:
            await self._ask(line, node, fetch(left.pop(0), EPOCH_FINAL))
        names = self._names()
        session_id = await self._ask(line, node, fetch(NO_SESSION, EPOCH_NEW, names))
        self.opened += bool(session_id)
        self.refused += session_id == NO_SESSION
        for epoch in range(1, self.random.randint(1, FETCHES_MAX)):
            if not session_id:
                return
            given_up = self.random.sample(names, self.random.randint(0, len(names)))
            names = [*(name for name in names if name not in given_up), *(added := self._names())]
            session_id = await self._ask(line, node, fetch(session_id, epoch, added, given_up))
        if session_id and self.random.random() < ENDS_SHARE:
            await self._ask(line, node, fetch(session_id, EPOCH_FINAL))
        elif session_id:
            left.append(session_id)

    def _names(self) -> list[str]:
        """Names that nobody had before."""
        count = self.random.randint(1, NAMED_MAX)
        self._count += count
        return [name_of(self.name, number) for number in range(self._count - count, self._count)]

    async def _ask(self, line: Line, node: Node, request: FetchRequest) -> int | None:
        """The session that the broker has answered with, or none."""
        answer = await line.ask(request, FetchResponse, VERSION)
        self.workload.look(node)
        if not isinstance(answer, FetchResponse) or answer.error_code != ErrorCode.NONE:
            return None
        return int(answer.session_id)


def name_of(client: str, number: int) -> str:
    return f"{client}-{number}-".ljust(NAME_CHARACTERS, "n")


class NamedSessions(Workload):
    """Two who name topics, and more names than there is room for."""

    share = 0.15

    def clients(self) -> Iterable[Client]:
        self._namers = [self.as_client(Namer, name) for name in ("namer", "other namer")]
        for namer in self._namers:
            namer.workload = self
        return () if "crowds" in self.shape.workloads else self._namers  # whose brokers take fewer connections

    def look(self, node: Node) -> None:
        """NamesAreBounded, at a node that has answered."""
        if node.is_serving and (kept := names_kept(node)) > NAMES_MAX:
            self.simulation.fail(f"NamesAreBounded: {node.process} keeps {kept} names; there is room for {NAMES_MAX}")

    async def judge(self) -> list[str]:
        if "crowds" in self.shape.workloads:
            return []
        self.reached(
            sessions_named=sum(namer.opened for namer in self._namers),
            sessions_without_room=sum(namer.refused for namer in self._namers),
        )
        last = self.as_judge(Client, "last namer")
        return [what for node in self.simulation.nodes for what in await self.running(last, self._room(node))]

    async def _room(self, node: Node) -> list[str]:
        """NamesAreGivenBack: what is wrong at a node where all sessions with names have ended, and one exchanges its
        names for as many others.
        """
        async with asyncio.timeout(ANSWER_SECONDS_MAX):
            _, line = await self.loop.create_connection(Line, node.host, CLIENT_PORT)
            try:
                await self._end_all(line, node)
                await self._exchange(line, node)
                await self._end_all(line, node)
                names = [name_of("last namer", number) for number in range(2 * NAMES_MAX)]
                first, others = names[:NAMES_MAX], names[NAMES_MAX:]
                answer = await line.ask(fetch(NO_SESSION, EPOCH_NEW, first), FetchResponse, VERSION)
                if isinstance(answer, FetchResponse) and answer.session_id:
                    exchange = fetch(answer.session_id, 1, others, first)
                    answer = await line.ask(exchange, FetchResponse, VERSION)
            finally:
                line.close()
        if isinstance(answer, FetchResponse) and answer.session_id:
            return []
        return [f"NamesAreGivenBack: {node.process} has no room for {NAMES_MAX} names, and keeps {names_kept(node)}"]

    async def _end_all(self, line: Line, node: Node) -> None:
        for session_id, session in sessions_of(node).items():
            if not session.uses_ids:
                await line.ask(fetch(session_id, EPOCH_FINAL), FetchResponse, VERSION)

    async def _exchange(self, line: Line, node: Node) -> None:
        """NamesAreBounded, too, where short names are given up for as many long ones."""
        short = [str(number) for number in range(NAMES_MAX + 1)]
        answer = await line.ask(fetch(NO_SESSION, EPOCH_NEW, short), FetchResponse, VERSION)
        if isinstance(answer, FetchResponse) and answer.session_id:
            long = [name_of("longer", number) for number in range(NAMES_MAX + 1)]
            await line.ask(fetch(answer.session_id, 1, long, short), FetchResponse, VERSION)
            self.look(node)
