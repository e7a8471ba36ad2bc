"""Who leads the controllers, as DescribeQuorum tells it on the wire."""

from struct import Struct

from kavka_broker.protocol.codec import decode, encode
from kavka_broker.protocol.messages.describe_quorum_request import DescribeQuorumRequest, PartitionData, TopicData
from kavka_broker.protocol.messages.describe_quorum_response import DescribeQuorumResponse
from tests.support.nodes import Nodes
from tests.support.wire import Connection

SECONDS_MAX = 5.0
NOBODY = -1
KEY, VERSION = 55, 0
_LENGTH = Struct(">i")


def active_controller(nodes: Nodes) -> int:
    """The id of the active controller, as a broker that runs says, once one is known."""
    found: list[int] = []

    def is_known() -> bool:
        asked = [place for place in nodes.places if place.is_broker and nodes[place.node_id].process is not None]
        found[:] = [leader for leader in (ask(("127.0.0.1", place.port)) for place in asked) if leader != NOBODY]
        return bool(found)

    nodes.wait("a controller leads", is_known)
    return found[0]


def ask(address: tuple[str, int]) -> int:
    request = DescribeQuorumRequest([TopicData("__cluster_metadata", [PartitionData(0)])])
    try:
        with Connection(address, SECONDS_MAX) as connection:
            frame = connection.request(KEY, VERSION, encode(request, VERSION), flexible=True)
    except OSError:
        return NOBODY
    if frame is None:
        return NOBODY
    answer = decode(DescribeQuorumResponse, VERSION, frame[_LENGTH.size + 1 :])
    return answer.topics[0].partitions[0].leader_id if answer.topics else NOBODY
