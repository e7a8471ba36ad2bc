"""The answer to a produce request, from its appends until every partition has acknowledged them.

A partition that is not there yet gets a `Share` to settle: when its high watermark has passed the records (acks=all),
or when they are synced (`flush.messages`). The last share of a request gives the answer. Thousands of requests a second
come by here, so there is no task for each, and no future for each partition.
"""

import asyncio
from collections.abc import Callable

from kavka_broker.protocol.errors import BrokerError, ErrorCode, ProtocolViolation
from kavka_broker.protocol.messages.produce_request import ProduceRequest
from kavka_broker.protocol.messages.produce_response import PartitionProduceResponse, ProduceResponse
from kavka_broker.timers import Timer, Timers

NamesLeader = Callable[[PartitionProduceResponse], None]


class Share:
    """One partition's part, as `replica.leading.purgatory.Waiter`."""

    __slots__ = ("_names_leader", "is_answered", "response", "waits_for_others", "whole")

    def __init__(self, response: PartitionProduceResponse, names_leader: NamesLeader, *, waits_for_others: bool):
        self.response = response
        self.waits_for_others = waits_for_others  # and not for the disk of this broker alone
        self.whole: Acknowledgement | None = None
        self.is_answered = False
        self._names_leader = names_leader

    def done(self) -> bool:
        """Whether nobody waits for it any more."""
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
    """`future` is done with the answer, or with None for acks=0. It takes the list of `shares` over."""

    __slots__ = ("_answer", "_open", "_request", "_shares", "_timer", "future")

    def __init__(self, request: ProduceRequest, answer: ProduceResponse, shares: list[Share], timers: Timers):
        self.future: asyncio.Future[ProduceResponse | None] = asyncio.get_running_loop().create_future()
        self._request = request
        self._answer = answer
        self._shares = shares
        self._timer: Timer | None = None
        self._open = 1  # shares, and the rest of this
        is_bounded = False
        for share in shares:
            share.whole = self
            self._open += not share.is_answered  # one may have been refused while the others were appended
            is_bounded = is_bounded or share.waits_for_others
        if is_bounded:  # a sync takes as long as it takes, as within an append
            self._timer = timers.after(request.timeout_ms, self._time_out)
        self.share_answered()

    def share_answered(self) -> None:
        """Give the answer, if this was the last share."""
        self._open -= 1
        if not self._open and not self.future.done():
            self._finish()

    def _finish(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._shares.clear()  # each holds this, as the timer does: nothing is left for the collector of cycles
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
    """The answer, or None for acks=0. Raises ProtocolViolation where that has failed: nothing is sent for it, so a lost
    connection is the only way to tell.
    """
    if request.acks:
        return answer
    failed = next((p for topic in answer.responses for p in topic.partition_responses if p.error_code), None)
    if failed is not None:
        raise ProtocolViolation(f"produce with acks=0 failed: {ErrorCode(failed.error_code).name}")
    return None
