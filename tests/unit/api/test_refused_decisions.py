"""A decision that the controller cannot write, on a full disk or at its end: every part of the request is told so.

These answers have no place for an error of their own; without one for each part the connection would just close.
"""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages import (
    alter_client_quotas_request as quotas,
)
from kavka_broker.protocol.messages import (
    create_partitions_request as partitions,
)
from kavka_broker.protocol.messages import (
    create_topics_request as creation,
)
from kavka_broker.protocol.messages import (
    delete_topics_request as deletion,
)
from kavka_broker.protocol.messages import (
    incremental_alter_configs_request as configs,
)
from kavka_broker.protocol.messages.alter_client_quotas_response import AlterClientQuotasResponse
from kavka_broker.protocol.messages.create_partitions_response import CreatePartitionsResponse
from kavka_broker.protocol.messages.create_topics_response import CreateTopicsResponse
from kavka_broker.protocol.messages.delete_topics_response import DeleteTopicsResponse
from kavka_broker.protocol.messages.elect_leaders_request import ElectLeadersRequest, TopicPartitions
from kavka_broker.protocol.messages.elect_leaders_response import ElectLeadersResponse
from kavka_broker.protocol.messages.incremental_alter_configs_response import IncrementalAlterConfigsResponse
from tests.support.decisions import before_decisions
from tests.support.in_process import running

TOPIC = 2
REQUESTS: list[tuple[Message, type[Message], int, str]] = [
    (creation.CreateTopicsRequest([creation.CreatableTopic("n", 1, 1)]), CreateTopicsResponse, 7, "topics"),
    (deletion.DeleteTopicsRequest([deletion.DeleteTopicState("t")]), DeleteTopicsResponse, 6, "responses"),
    (
        partitions.CreatePartitionsRequest([partitions.CreatePartitionsTopic("t", 2, None)]),
        CreatePartitionsResponse,
        3,
        "results",
    ),
    (
        configs.IncrementalAlterConfigsRequest(
            [configs.AlterConfigsResource(TOPIC, "t", [configs.AlterableConfig("retention.ms", 0, "1")])]
        ),
        IncrementalAlterConfigsResponse,
        1,
        "responses",
    ),
    (
        quotas.AlterClientQuotasRequest(
            [quotas.EntryData([quotas.EntityData("user", "u")], [quotas.OpData("producer_byte_rate", 1.0)])]
        ),
        AlterClientQuotasResponse,
        1,
        "entries",
    ),
]


async def refuse(*_: object) -> Any:
    raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, "no room")


@pytest.mark.parametrize(
    ("request_", "kind", "version", "parts"), REQUESTS, ids=[kind.NAME for _, kind, *_ in REQUESTS]
)
def test_every_part_of_a_refused_request_gets_the_error(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request_: Message,
    kind: type[Message],
    version: int,
    parts: str,
) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as inside:
            await inside.create("t")
            client = await inside.connect()
            with monkeypatch.context() as patch:
                before_decisions(patch, inside.broker.active, refuse)
                answer = await client.call(request_, kind, version)
            codes = [part.error_code for part in getattr(answer, parts)]
            assert codes == [ErrorCode.KAFKA_STORAGE_ERROR]

    asyncio.run(scenario())


@pytest.mark.parametrize(("version", "at_the_top"), [(0, ErrorCode.NONE), (1, ErrorCode.KAFKA_STORAGE_ERROR)])
def test_every_partition_of_a_refused_election_gets_the_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int, at_the_top: ErrorCode
) -> None:
    """Version 0 has no error at its top. Without a named partition, only a closed connection tells of the refusal."""

    async def scenario() -> None:
        async with running(tmp_path) as inside:
            await inside.create("t")
            client = await inside.connect()
            with monkeypatch.context() as patch:
                before_decisions(patch, inside.broker.active, refuse)
                asked = ElectLeadersRequest(topic_partitions=[TopicPartitions("t", [0])])
                answer = await client.call(asked, ElectLeadersResponse, version)
                assert answer.error_code == at_the_top
                (topic,) = answer.replica_election_results
                assert [partition.error_code for partition in topic.partition_result] == [ErrorCode.KAFKA_STORAGE_ERROR]
                everything = ElectLeadersRequest(topic_partitions=None)
                if at_the_top:
                    assert (await client.call(everything, ElectLeadersResponse, version)).error_code == at_the_top
                else:
                    with pytest.raises(asyncio.IncompleteReadError):
                        await client.call(everything, ElectLeadersResponse, version)

    asyncio.run(scenario())
