"""Fetch of `__cluster_metadata`: how voters and observers get the log of the quorum.

The same API as for any topic, but its own rules: only the leader of the quorum answers with records, whoever else is
asked names the leader; a fetch acknowledges what stands before it; it waits for records or for a higher high
watermark; and one that is behind the log's beginning is sent to a snapshot.
"""

from collections.abc import Awaitable
from typing import Final

from kavka_broker.controller.quorum import Quorum
from kavka_broker.protocol.errors import ErrorCode
from kavka_broker.protocol.messages.fetch_request import FetchRequest
from kavka_broker.protocol.messages.fetch_response import FetchResponse

#: Followers name the epoch of their last record from this version on.
LAST_EPOCH_VERSION: Final = 12


def metadata_fetch(request: FetchRequest, quorum: Quorum, version: int) -> FetchResponse | Awaitable[FetchResponse]:
    """The answer to a fetch of metadata, or a future of it."""
    if version < LAST_EPOCH_VERSION:
        return FetchResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    answer: FetchResponse | Awaitable[FetchResponse] = quorum.serve(request)
    return answer
