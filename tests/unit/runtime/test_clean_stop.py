"""What a clean stop leaves behind."""

import asyncio
import json
from pathlib import Path

import pytest

from kavka_broker.controller.quorum import Quorum
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.runtime.server import Server, StartError
from kavka_broker.storage.log_manager import LogManager
from tests.support.in_process import running


def marked_epoch(directory: Path) -> int:
    epoch: int = json.loads((directory / ".kafka_cleanshutdown").read_text())["brokerEpoch"]
    return epoch


def test_the_mark_of_a_clean_stop_has_the_epoch_of_the_registration(tmp_path: Path) -> None:
    """Apache Kafka takes any other epoch for a crash, and empties the in-sync replicas of every partition."""

    async def scenario() -> int:
        async with running(tmp_path) as inside:
            registration = inside.broker.metadata.brokers.get(inside.broker.node_id)
            assert registration is not None
            return registration.epoch

    epoch = asyncio.run(scenario())

    assert marked_epoch(tmp_path) == epoch


def test_a_stop_between_the_registration_and_the_logs_is_as_clean_as_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next registration would else name the epoch before, and lose what only a clean stop lets a replica keep."""
    servers: list[Server] = []

    async def interrupted(self: Server, logs: LogManager, quorum: Quorum) -> None:
        del logs, quorum
        servers.append(self)
        raise StartError("told to stop while logs are loaded")

    async def scenario() -> tuple[int, int]:
        async with running(tmp_path):
            pass
        before = marked_epoch(tmp_path)
        monkeypatch.setattr(Server, "_load", interrupted)
        with pytest.raises(StartError):
            async with running(tmp_path):
                pass
        registration = servers[0].broker.metadata.brokers.get(1)
        assert registration is not None
        await servers[0].stop("the test ends")
        return before, registration.epoch

    before, epoch = asyncio.run(scenario())

    assert before < epoch == marked_epoch(tmp_path)


def test_who_stops_is_not_ready(tmp_path: Path) -> None:
    """While it still hands over what it leads, clients are better sent elsewhere."""

    async def scenario() -> bool:
        async with running(tmp_path) as inside:
            health = inside.server.health
            ready_until_then = health.is_ready
        assert health.obstacles["stopping"] == "told to stop: the test ends"
        return ready_until_then

    assert asyncio.run(scenario())


def test_a_part_that_fails_to_stop_does_not_keep_the_logs_from_being_closed(tmp_path: Path) -> None:
    async def broken() -> None:
        raise ValueError("a defect")

    async def scenario() -> None:
        async with running(tmp_path) as inside:
            inside.server.stops.append(("a part", broken))

    asyncio.run(scenario())

    assert marked_epoch(tmp_path) >= 0


def test_a_disk_that_fails_while_a_part_stops_is_told_as_what_it_is(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """And not as a defect, with a traceback (simulated: a disk fails as the metadata log is closed)."""

    async def refused() -> None:
        raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, "__cluster_metadata-0: close: Input/output error")

    async def scenario() -> None:
        async with running(tmp_path) as inside:
            inside.server.stops.append(("a part", refused))

    asyncio.run(scenario())

    (told,) = [record for record in caplog.records if record.getMessage() == "part.not_stopped"]
    assert told.exc_info is None
