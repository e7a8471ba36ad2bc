"""What all clients of groups have in common: they look for the coordinator, and commit offsets."""

from typing import Any, Final

from kavka_broker.peers import Unreachable
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from kavka_broker.protocol.messages.find_coordinator_response import FindCoordinatorResponse
from kavka_broker.protocol.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kavka_broker.protocol.messages.offset_commit_response import OffsetCommitResponse
from kavka_broker.protocol.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from kavka_broker.protocol.messages.offset_fetch_response import OffsetFetchResponse
from tests.sim.clients import ANSWER_MS, Client
from tests.sim.commits import Attempt
from tests.sim.history import Place

GROUP: Final = "g"
COMMIT_MS = 8_000
GROUP_KEY: Final = 0

#: The coordinator may be elsewhere.
ELSEWHERE = frozenset({
    ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.REQUEST_TIMED_OUT,
})  # fmt: skip

#: A commit that is answered so was not written.
REFUSALS = frozenset({
    ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID,
    ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.GROUP_ID_NOT_FOUND,
})  # fmt: skip


class Again(Exception):
    """What was asked for cannot be had now."""


class Grouped(Client):
    """A client that speaks to the coordinator of its group."""

    group_id = GROUP
    coordinator: tuple[str, int] | None = None
    doing = "nothing yet"

    async def find(self) -> tuple[str, int]:
        while self.coordinator is None:
            self.doing = "looks for the coordinator"
            answer = await self.ask_any(FindCoordinatorRequest("", GROUP_KEY, [self.group_id]), FindCoordinatorResponse)
            found = answer.coordinators[0] if isinstance(answer, FindCoordinatorResponse) else None
            if found is not None and not found.error_code:
                self.coordinator = found.host, found.port
            else:
                await self.pause()
        return self.coordinator

    async def call(self, request: Message, response: type[Message], timeout_ms: int = ANSWER_MS) -> Any:
        """Send a request to the coordinator. Raises Again where no node answers."""
        address = await self.find()
        self.doing = f"waits for {response.__name__}"
        try:
            return await self.peer(address).ask(request, response, timeout_ms=timeout_ms)
        except Unreachable:
            self.coordinator = None
            raise Again("nobody answers") from None

    async def try_call(self, request: Message, response: type[Message]) -> Any:
        """Send a request to the coordinator; None where no node answers."""
        try:
            return await self.call(request, response)
        except Again:
            return None

    def refused(self, code: int) -> None:
        """Take note of an error code. Raises Again."""
        if code in ELSEWHERE:
            self.coordinator = None
        raise Again(ErrorCode(code).name)

    async def committed(self, place: Place) -> int:
        """What is committed, as the coordinator says; NOTHING where nothing is. Raises Again."""
        wanted = OffsetFetchRequestTopics(place[0], self.topic_ids[place[0]], [place[1]])
        group = OffsetFetchRequestGroup(self.group_id, None, -1, [wanted])
        answer = (await self.call(OffsetFetchRequest("", [], [group]), OffsetFetchResponse)).groups[0]
        if answer.error_code:
            self.refused(answer.error_code)
        told = answer.topics[0].partitions[0]
        if told.error_code:
            self.refused(told.error_code)
        self._learn_epoch(place, told.committed_leader_epoch)
        return int(told.committed_offset)

    def _learn_epoch(self, place: Place, epoch: int) -> None:
        """Ask no leader of an older epoch than the committer has read from: it may lack what is committed (KIP-320)."""
        if epoch > self._epochs.get(place, -1):
            self._epochs[place] = epoch
            self.forget_leader(place)

    async def send_commit(
        self, place: Place, attempt: Attempt, generation: int, member_id: str, instance: str | None
    ) -> int:
        """The error code of a commit; what was refused for sure is marked so. Raises Again."""
        partition = OffsetCommitRequestPartition(place[1], attempt.offset, self._epochs.get(place, -1))
        topic = OffsetCommitRequestTopic(place[0], self.topic_ids[place[0]], [partition])
        request = OffsetCommitRequest(self.group_id, generation, member_id, instance, -1, [topic])
        answer = await self.call(request, OffsetCommitResponse, COMMIT_MS)
        code = int(answer.topics[0].partitions[0].error_code)
        attempt.is_refused = code in REFUSALS
        return code
