"""What the proxy changes in messages."""

from typing import Any

import pytest

from kavka_broker.protocol.catalog import request_class
from kavka_broker.protocol.messages import index
from kavka_broker.protocol.messages.api_versions_response import ApiVersion, ApiVersionsResponse
from kavka_broker.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from kavka_broker.protocol.messages.fetch_response import FetchResponse
from kavka_broker.protocol.messages.fetch_response import NodeEndpoint as FetchEndpoint
from kavka_broker.protocol.messages.find_coordinator_response import Coordinator, FindCoordinatorResponse
from kavka_broker.protocol.messages.metadata_response import MetadataResponse, MetadataResponseBroker
from kavka_pytest.relayed import FetchSession, endpoints, limit_versions, may_hold_endpoints, replace_addresses

FROM, TO = ("127.0.0.1", 9092), ("127.0.0.1", 40000)


@pytest.mark.parametrize(
    "answer",
    [
        MetadataResponse(brokers=[MetadataResponseBroker(1, *FROM)]),
        FindCoordinatorResponse(host=FROM[0], port=FROM[1]),
        FindCoordinatorResponse(coordinators=[Coordinator("g", 1, *FROM)]),
        FetchResponse(node_endpoints=[FetchEndpoint(1, *FROM)]),
    ],
)
def test_addresses_of_brokers_are_replaced(answer: Any) -> None:
    assert may_hold_endpoints(answer.API_KEY)
    replace_addresses(answer, {FROM: TO}.__getitem__)
    found = [(one.host, one.port) for one in endpoints(answer) if one.host]
    assert found == [TO]


def test_no_address_stays_none() -> None:
    answer = FindCoordinatorResponse(error_code=15, coordinators=[Coordinator("g", -1, "", -1)])
    replace_addresses(answer, lambda _: TO)
    assert (answer.coordinators[0].host, answer.coordinators[0].port) == ("", -1)


def test_the_apis_whose_answers_hold_addresses() -> None:
    names = {index.RESPONSES[key].removesuffix("Response") for key in index.RESPONSES if may_hold_endpoints(key)}
    assert names >= {"Metadata", "FindCoordinator", "Produce", "Fetch", "DescribeCluster"}
    assert not names & {"ApiVersions", "JoinGroup", "ListOffsets", "CreateTopics"}


def test_versions_that_cannot_be_read_are_taken_out() -> None:
    low, high = request_class(0).VERSIONS
    answer = ApiVersionsResponse(
        api_keys=[ApiVersion(0, low, high + 5), ApiVersion(1, 4, 6), ApiVersion(3, 90, 99), ApiVersion(9_999, 0, 0)]
    )
    limit_versions(answer)
    assert [(one.api_key, one.min_version, one.max_version) for one in answer.api_keys] == [(0, low, high), (1, 4, 6)]


def fetch(
    epoch: int, *topics: tuple[str, list[int]], forgotten: tuple[tuple[str, list[int]], ...] = ()
) -> FetchRequest:
    return FetchRequest(
        session_epoch=epoch,
        topics=[FetchTopic(topic=name, partitions=[FetchPartition(part) for part in parts]) for name, parts in topics],
        forgotten_topics_data=[ForgottenTopic(topic=name, partitions=parts) for name, parts in forgotten],
    )


def partitions(request: FetchRequest) -> dict[str, list[int]]:
    return {topic.topic: [part.partition for part in topic.partitions] for topic in request.topics}


def test_a_fetch_of_a_session_has_all_of_its_partitions() -> None:
    session = FetchSession()
    assert partitions(session.whole(fetch(0, ("a", [0, 1]), ("b", [0])))) == {"a": [0, 1], "b": [0]}
    assert partitions(session.whole(fetch(1))) == {"a": [0, 1], "b": [0]}
    assert partitions(session.whole(fetch(2, ("b", [1]), forgotten=(("a", [0, 1]),)))) == {"b": [0, 1]}
    assert partitions(session.whole(fetch(3))) == {"b": [0, 1]}
    assert partitions(session.whole(fetch(0, ("c", [3])))) == {"c": [3]}
    assert partitions(session.whole(fetch(-1, ("d", [4])))) == {"d": [4]}
