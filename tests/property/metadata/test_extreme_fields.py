"""Whatever a request to a controller says in any one of its fields, the controller answers, lives, and starts again.

Each request is one that could be honest; one field after the other takes the values at the ends of its type. What the
controller says to that is tested elsewhere. Here: it says something, nothing fails unforeseen, no topic, config or
feature changes, and the same node leads again after a start on what was written.
"""

import asyncio
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from kavka_broker.core.metadata.image.features import SUPPORTED_LEVELS
from kavka_broker.protocol.codec import encode
from kavka_broker.protocol.message import Message, Struct
from kavka_broker.protocol.messages import (
    add_raft_voter_request,
    allocate_producer_ids_request,
    alter_partition_request,
    assign_replicas_to_dirs_request,
    begin_quorum_epoch_request,
    broker_heartbeat_request,
    broker_registration_request,
    controller_registration_request,
    describe_quorum_request,
    end_quorum_epoch_request,
    fetch_request,
    fetch_snapshot_request,
    remove_raft_voter_request,
    unregister_broker_request,
    update_raft_voter_request,
    vote_request,
)
from kavka_broker.protocol.messages.broker_registration_response import BrokerRegistrationResponse
from kavka_broker.protocol.uuids import ONE
from kavka_broker.request.registry import APIS
from tests.support.cluster import uuid
from tests.support.in_process import CLUSTER_ID, Client, InProcess, running
from tests.support.waiting import until

TOPIC: Final = "__cluster_metadata"
STRANGER: Final = 7
WAITS_S: Final = 0.2  # for an answer that may rightly wait: for records, or until a voter was asked
BITS: Final = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}


def extremes(kind: str, value: Any) -> list[Any]:
    """The ends of a field's type; of a list also none, and its items twice."""
    if kind in BITS:
        top = 2 ** (BITS[kind] - 1)
        return [-top, -1, 0, top - 2, top - 1]
    if kind in ("uint16", "uint32"):
        return [0, 2 ** int(kind[4:]) - 1]
    match kind:
        case "bool":
            return [not value]
        case "uuid":
            return [bytes(16), ONE, b"\xff" * 16]
        case "string":
            return ["", "\0", "x" * 32_000, None]
        case _ if kind.startswith("[]"):
            return [[], [*value, *copied(value)]] if value else []
    return []


def copied(value: Any) -> Any:
    """A message or a list with everything in it; the defaults that all messages share are not copied."""
    if isinstance(value, list):
        return [copied(one) for one in value]
    if isinstance(value, Struct) and not is_shared(value):
        return type(value)(**{place[1]: copied(getattr(value, place[1])) for place in value.SCHEMA})
    return value


def is_shared(value: Struct) -> bool:
    return type(value).__name__.startswith("Shared") or type(value).__setattr__ is not object.__setattr__


def variants(request: Any, root: Any = None) -> Iterator[Any]:
    """The request with one field changed, for every field of it and of what it holds."""
    root = request if root is None else root
    for place in request.SCHEMA:
        name, kind = place[1], place[2]
        value = getattr(request, name)
        for extreme in extremes(kind, value):
            setattr(request, name, extreme)
            yield copied(root)
        setattr(request, name, value)
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, Struct) and not is_shared(item):
                yield from variants(item, root)


def requests(inside: InProcess, topic_id: bytes, epoch: int) -> Iterator[Message]:
    """Of each kind one as an honest node would send it; `epoch` is that of the stranger, broker 7."""
    quorum, directory = inside.broker.quorum.epoch, uuid(77)
    vote = vote_request.PartitionData(0, quorum, STRANGER, uuid(70), uuid(71), quorum, 10_000, True)
    yield vote_request.VoteRequest(CLUSTER_ID, 1, [vote_request.TopicData(TOPIC, [vote])])
    begun = begin_quorum_epoch_request.PartitionData(0, bytes(16), STRANGER, quorum)
    yield begin_quorum_epoch_request.BeginQuorumEpochRequest(
        CLUSTER_ID,
        1,
        [begin_quorum_epoch_request.TopicData(TOPIC, [begun])],
        [begin_quorum_epoch_request.LeaderEndpoint("CONTROLLER", "127.0.0.1", 1)],
    )
    ended = end_quorum_epoch_request.PartitionData(
        0, STRANGER, quorum, [1], [end_quorum_epoch_request.ReplicaInfo(1, bytes(16))]
    )
    yield end_quorum_epoch_request.EndQuorumEpochRequest(
        CLUSTER_ID, [end_quorum_epoch_request.TopicData(TOPIC, [ended])]
    )
    yield fetch_request.FetchRequest(
        cluster_id=CLUSTER_ID,
        replica_state=fetch_request.ReplicaState(STRANGER, epoch),
        max_wait_ms=0,
        max_bytes=1 << 20,
        topics=[fetch_request.FetchTopic("", ONE, [fetch_request.FetchPartition(0, quorum, 0, 0, -1, 1 << 20)])],
    )
    yield fetch_snapshot_request.FetchSnapshotRequest(
        CLUSTER_ID,
        STRANGER,
        1 << 20,
        [
            fetch_snapshot_request.TopicSnapshot(
                TOPIC,
                [fetch_snapshot_request.PartitionSnapshot(0, quorum, fetch_snapshot_request.SnapshotId(1, 0), 0)],
            )
        ],
    )
    listener = add_raft_voter_request.Listener("CONTROLLER", "127.0.0.1", 1)
    yield add_raft_voter_request.AddRaftVoterRequest(CLUSTER_ID, 50, STRANGER, uuid(70), [listener])
    yield remove_raft_voter_request.RemoveRaftVoterRequest(CLUSTER_ID, STRANGER, uuid(70))
    yield update_raft_voter_request.UpdateRaftVoterRequest(
        CLUSTER_ID,
        quorum,
        STRANGER,
        uuid(70),
        [update_raft_voter_request.Listener("CONTROLLER", "127.0.0.1", 1)],
        update_raft_voter_request.KRaftVersionFeature(0, 1),
    )
    yield describe_quorum_request.DescribeQuorumRequest(
        [describe_quorum_request.TopicData(TOPIC, [describe_quorum_request.PartitionData(0)])]
    )
    yield registration(uuid(78))
    yield broker_heartbeat_request.BrokerHeartbeatRequest(STRANGER, epoch, 1, True, False, [uuid(5)], [directory])
    state = alter_partition_request.BrokerState(STRANGER, epoch)
    changed = alter_partition_request.PartitionData(0, 0, [], [state], 0, 0)
    yield alter_partition_request.AlterPartitionRequest(
        STRANGER, epoch, [alter_partition_request.TopicData(topic_id, [changed])]
    )
    yield allocate_producer_ids_request.AllocateProducerIdsRequest(STRANGER, epoch)
    placed = assign_replicas_to_dirs_request.TopicData(topic_id, [assign_replicas_to_dirs_request.PartitionData(0)])
    yield assign_replicas_to_dirs_request.AssignReplicasToDirsRequest(
        STRANGER, epoch, [assign_replicas_to_dirs_request.DirectoryData(directory, [placed])]
    )
    yield controller_registration_request.ControllerRegistrationRequest(
        STRANGER,
        uuid(70),
        False,
        [controller_registration_request.Listener("CONTROLLER", "127.0.0.1", 1)],
        [controller_registration_request.Feature(name, *levels) for name, levels in SUPPORTED_LEVELS.items()],
    )
    yield unregister_broker_request.UnregisterBrokerRequest(STRANGER)


def registration(incarnation: bytes) -> broker_registration_request.BrokerRegistrationRequest:
    return broker_registration_request.BrokerRegistrationRequest(
        STRANGER,
        CLUSTER_ID,
        incarnation,
        [broker_registration_request.Listener("PLAINTEXT", "127.0.0.1", 1)],
        [broker_registration_request.Feature(name, *levels) for name, levels in SUPPORTED_LEVELS.items()],
        "rack",
        False,
        [uuid(77)],
    )


def encodes(request: Message, version: int) -> bool:
    """Not every value can be said: a string of null, a field that a version lacks."""
    try:
        encode(request, version)
    except Exception:  # noqa: BLE001 - it was never sent
        return False
    return True


async def heard(client: Client, request: Message, version: int) -> bytes | None:
    """The answer's bytes; None where it waits, empty where the connection was closed."""
    client.send(request, version)
    try:
        async with asyncio.timeout(WAITS_S):
            size = int.from_bytes(await client.reader.readexactly(4), "big")
            return await client.reader.readexactly(size)
    except asyncio.IncompleteReadError:
        return b""
    except TimeoutError:
        return None


def kept(inside: InProcess) -> list[Message]:
    metadata = inside.broker.metadata
    return [*metadata.topics.records(), *metadata.configs.records(), *metadata.features.records()]


def leads_again(inside: InProcess) -> bool:
    found = inside.broker.metadata.brokers.get(1)
    return bool(inside.broker.leads and found is not None and not found.fenced)


async def until_it_leads(inside: InProcess) -> None:
    await until(lambda: leads_again(inside))


def test_a_request_with_extreme_fields_is_answered(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    settings = {"controller.quorum.election.timeout.ms": "20", "controller.quorum.fetch.timeout.ms": "40"}
    unforeseen: list[Any] = []
    asked: dict[str, int] = {}

    async def ask(inside: InProcess, client: Client, topic_id: bytes) -> None:
        epoch = (await client.call(registration(uuid(76)), BrokerRegistrationResponse, 4)).broker_epoch
        for honest in requests(inside, topic_id, epoch):
            assert honest.API_KEY is not None
            version = APIS[honest.API_KEY].versions[1]
            for request in (honest, *variants(honest)):
                if not encodes(request, version):
                    continue
                answer = await heard(client, request, version)
                may_close = len(encode(request, version)) > APIS[honest.API_KEY].bytes_max
                assert answer != b"" or may_close, f"{request} closed the connection"
                asked[honest.NAME] = asked.get(honest.NAME, 0) + 1
                if not answer:
                    client = await inside.connect(to_controller=True)
                    await until_it_leads(inside)

    async def scenario() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: unforeseen.append(context))
        async with running(tmp_path, settings) as inside:
            topic_id = await inside.create("t")
            before = kept(inside)
            await ask(inside, await inside.connect(to_controller=True), topic_id)
            await until_it_leads(inside)
            assert kept(inside) == before
        async with running(tmp_path, settings) as inside:
            assert leads_again(inside)
            assert [topic.name for topic in inside.broker.metadata.topics] == ["t"]

    asyncio.run(scenario())
    assert not unforeseen
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert len(asked) == 16, asked
    assert min(asked.values()) > 3, asked
