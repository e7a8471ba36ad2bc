"""FetchSnapshot (59): a piece of a snapshot of the metadata, for one who is behind the beginning of the log.

- Only the leader answers. A snapshot that is gone is SNAPSHOT_NOT_FOUND: the follower asks for the log again.
- A position outside of it is POSITION_OUT_OF_RANGE.
Versions: flexible from 0; directories and the leader's address from 1.
"""

from collections.abc import Awaitable

from kavka_broker.protocol.messages.fetch_snapshot_request import FetchSnapshotRequest
from kavka_broker.protocol.messages.fetch_snapshot_response import FetchSnapshotResponse
from kavka_broker.request.broker import Broker, Client
from kavka_broker.request.quorum_answers import fitting
from kavka_broker.request.registry import CONTROLLER, api

ADDRESSES_SINCE = 1


@api(FetchSnapshotRequest, FetchSnapshotResponse, versions=(0, 1), on=CONTROLLER)
def fetch_snapshot(
    request: FetchSnapshotRequest, broker: Broker, client: Client
) -> FetchSnapshotResponse | Awaitable[FetchSnapshotResponse]:
    answer: FetchSnapshotResponse | Awaitable[FetchSnapshotResponse] = broker.quorum.serve(request)
    return fitting(answer, client.version, ADDRESSES_SINCE)
