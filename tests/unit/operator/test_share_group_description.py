"""What an admin client reads of share groups, through the bytes of a broker's own codec."""

from typing import Any

import kafka.errors
import pytest
from kafka.protocol.metadata import FindCoordinatorRequest

from kavka_broker.protocol.codec import decode, encode
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages import describe_share_group_offsets_response as offsets
from kavka_broker.protocol.messages import find_coordinator_response as coordinators
from kavka_broker.protocol.messages import share_group_describe_response as described
from kavka_broker.protocol.messages.describe_share_group_offsets_request import DescribeShareGroupOffsetsRequest
from kavka_broker.protocol.messages.find_coordinator_request import FindCoordinatorRequest as FindCoordinator
from kavka_broker.protocol.messages.share_group_describe_request import ShareGroupDescribeRequest
from kavka_operator.kafka import share_groups
from kavka_operator.kafka.share_groups import ShareGroup, describe_share_groups

REQUESTS: dict[int, tuple[type[Message], int]] = {
    10: (FindCoordinator, 6),
    77: (ShareGroupDescribeRequest, 1),
    90: (DescribeShareGroupOffsetsRequest, 1),
}
RESPONSES: dict[int, Any] = {
    10: FindCoordinatorRequest,
    77: share_groups.ShareGroupDescribeRequest,
    90: share_groups.DescribeShareGroupOffsetsRequest,
}
NOT_AUTHORIZED = 30


class Brokers:
    """Two coordinators: of "mails" node 1, of "secret" node 2, which refuses to describe it, and none of "lost"."""

    def __init__(self, *, knows_offsets: bool = True) -> None:
        self.asked: list[tuple[int, int | None, list[str]]] = []
        self._knows_offsets = knows_offsets

    def send(self, request: Any, node: int | None) -> Any:
        key = request.API_KEY
        if key == 90 and not self._knows_offsets:
            raise kafka.errors.IncompatibleBrokerVersion
        kind, version = REQUESTS[key]
        answer = getattr(self, f"_answer_{key}")(decode(kind, version, request.encode(version=version)), node)
        return _response_class(RESPONSES[key]).decode(encode(answer, version), version=version)

    def _answer_10(self, request: FindCoordinator, node: int | None) -> Message:
        nodes = {"mails": 1, "secret": 2}
        self.asked.append((10, node, request.coordinator_keys))
        return coordinators.FindCoordinatorResponse(
            coordinators=[
                coordinators.Coordinator(name, nodes.get(name, -1), "h", 9, 0 if name in nodes else 15)
                for name in request.coordinator_keys
            ]
        )

    def _answer_77(self, request: ShareGroupDescribeRequest, node: int | None) -> Message:
        self.asked.append((77, node, request.group_ids))
        if node == 2:
            return described.ShareGroupDescribeResponse(
                groups=[described.DescribedGroup(NOT_AUTHORIZED, None, "secret")]
            )
        members = [described.Member("m", client_id="mailer", client_host="/10.0.0.1")]
        return described.ShareGroupDescribeResponse(
            groups=[described.DescribedGroup(0, None, "mails", "Stable", 4, 4, "simple", members)]
        )

    def _answer_90(self, request: DescribeShareGroupOffsetsRequest, node: int | None) -> Message:
        self.asked.append((90, node, [group.group_id for group in request.groups]))
        assert all(group.topics is None for group in request.groups), "all that the group reads"
        if node == 2:
            refused = offsets.DescribeShareGroupOffsetsResponseGroup("secret", error_code=NOT_AUTHORIZED)
            return offsets.DescribeShareGroupOffsetsResponse(groups=[refused])
        make = offsets.DescribeShareGroupOffsetsResponsePartition
        parts = [make(0, 40, 3, 7), make(1, 50, 3, -1), make(2, -1, -1, -1), make(3, 9, 1, 1, error_code=6)]
        topic = offsets.DescribeShareGroupOffsetsResponseTopic("orders", partitions=parts)
        return offsets.DescribeShareGroupOffsetsResponse(
            groups=[offsets.DescribeShareGroupOffsetsResponseGroup("mails", [topic])]
        )


def _response_class(request: Any) -> Any:
    """Return the class that decodes what answers a request."""
    own = getattr(share_groups, request.__name__.replace("Request", "Response"), None)
    if own is not None:
        return own
    from kafka.protocol.metadata import FindCoordinatorResponse

    return FindCoordinatorResponse


def test_a_share_group_is_described_by_its_own_coordinator() -> None:
    brokers = Brokers()
    found = describe_share_groups(brokers.send, ["lost", "mails", "secret"])
    assert found == {
        "lost": ShareGroup(),
        "mails": ShareGroup(
            "Stable",
            (("mailer", "10.0.0.1"),),
            {("orders", 0): 40, ("orders", 1): 50},
            {("orders", 0): 7, ("orders", 1): None, ("orders", 2): None, ("orders", 3): None},
        ),
        "secret": ShareGroup(),
    }
    assert brokers.asked[0] == (10, None, ["lost", "mails", "secret"])
    assert sorted(brokers.asked[1:]) == [
        (77, 1, ["mails"]), (77, 2, ["secret"]), (90, 1, ["mails"]), (90, 2, ["secret"])
    ]  # fmt: skip


def test_without_share_groups_nothing_is_asked() -> None:
    brokers = Brokers()
    assert describe_share_groups(brokers.send, []) == {}
    assert brokers.asked == []


def test_a_broker_that_does_not_know_offsets_of_share_groups_tells_members_alone() -> None:
    found = describe_share_groups(Brokers(knows_offsets=False).send, ["mails"])
    assert found == {"mails": ShareGroup("Stable", (("mailer", "10.0.0.1"),), None)}


def test_groups_are_asked_for_some_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(share_groups, "GROUPS_AT_ONCE", 2)
    brokers = Brokers()
    assert len(describe_share_groups(brokers.send, ["lost", "mails", "secret"])) == 3
    assert [groups for key, _, groups in brokers.asked if key == 10] == [["lost", "mails"], ["secret"]]
