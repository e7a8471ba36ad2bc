"""The answer to a produce request, from its appends until every partition has acknowledged them.

A partition that is not there yet gets a `Share` to settle: when its high watermark has passed the records (acks=all),
or when they are synced (`flush.messages`). The last share of a request gives the answer. Thousands of requests a second
come by here, so there is no task for each, and no future for each partition.
"""

import asyncio
from collections.abc import Callable

from kavka_broker.loop.timers import Timer, Timers
from kavka_broker.protocol.errors import BrokerError, ErrorCode, ProtocolViolation
from kavka_broker.protocol.messages.produce_request import ProduceRequest
from kavka_broker.protocol.messages.produce_response import PartitionProduceResponse, ProduceResponse

NamesLeader = Callable[[PartitionProduceResponse], None]


class Share:
    """The wait of one partition of a request, a `replica.leading.purgatory.Waiter`."""

    __slots__ = ("_names_leader", "is_answered", "response", "waits_for_others", "whole")

    def __init__(self, response: PartitionProduceResponse, names_leader: NamesLeader, *, waits_for_others: bool):
        self.response = response
        self.waits_for_others = waits_for_others  # otherwise only for the disk of this broker
        self.whole: Acknowledgement | None = None
        self.is_answered = False
        self._names_leader = names_leader

    def done(self) -> bool:
        """Whether the share is answered, or its request is."""
        return self.is_answered or (self.whole is not None and self.whole.future.done())

    def set_result(self, _: None) -> None:
        self.is_answered = True
        if self.whole is not None:
            self.whole.share_answered()

    def set_exception(self, error: Exception) -> None:
        assert isinstance(error, BrokerError), f"a partition gives up with {error!r}"
        self.refuse(error.code)
        self._names_leader(self.response)
        self.set_result(None)

    def refuse(self, code: ErrorCode) -> None:
        self.response.error_code, self.response.base_offset = code, -1


class Acknowledgement:
    """Answers a request once all its shares are answered. `future` gets the answer, or None for acks=0."""

    __slots__ = ("_answer", "_open", "_request", "_shares", "_timer", "future")

    def __init__(self, request: ProduceRequest, answer: ProduceResponse, shares: list[Share], timers: Timers):
        self.future: asyncio.Future[ProduceResponse | None] = asyncio.get_running_loop().create_future()
        self._request = request
        self._answer = answer
        self._shares = shares
        self._timer: Timer | None = None
        self._open = 1  # the open shares, and this constructor
        is_bounded = False
        for share in shares:
            share.whole = self
            self._open += not share.is_answered  # a share may have been refused while the others were appended
            is_bounded = is_bounded or share.waits_for_others
        if is_bounded:  # the sync of this broker's disk has no timeout, as in an append
            self._timer = timers.after(request.timeout_ms, self._time_out)
        self.share_answered()

    def share_answered(self) -> None:
        """Answer the request, if this was the last open share."""
        self._open -= 1
        if not self._open and not self.future.done():
            self._finish()

    def _finish(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._shares.clear()  # breaks the cycles, so that no garbage collection is needed
        try:
            self.future.set_result(answer_if_due(self._request, self._answer))
        except ProtocolViolation as violation:
            self.future.set_exception(violation)

    def _time_out(self) -> None:
        if self.future.done():
            return
        for share in self._shares:
            if not share.is_answered:
                share.refuse(ErrorCode.REQUEST_TIMED_OUT)
        self._finish()


def answer_if_due(request: ProduceRequest, answer: ProduceResponse) -> ProduceResponse | None:
    """The answer, or None for acks=0. Raises ProtocolViolation where an append of acks=0 has failed: without an answer,
    only a closed connection can tell the client.
    """
    if request.acks:
        return answer
    failed = next(
        (partition for topic in answer.responses for partition in topic.partition_responses if partition.error_code),
        None,
    )
    if failed is not None:
        raise ProtocolViolation(f"produce with acks=0 failed: {ErrorCode(failed.error_code).name}")
    return None
