"""A static voter that has lost its metadata log says so, instead of voting as if it had never lived."""

import asyncio
import shutil
from pathlib import Path

import pytest

from kavka_broker.controller.start_errors import CannotStart
from kavka_broker.controller.voter_amnesia import check_memory
from kavka_broker.core.config.broker import BrokerConfig
from kavka_broker.storage.disk import RealDisk
from tests.support.cluster import PROPERTIES
from tests.support.in_process import running

VOTERS = {"process.roles": "broker,controller", "node.id": "1", "controller.quorum.voters": "1@127.0.0.1:9093"}


def settings(home: Path, first: str, second: str) -> dict[str, str]:
    return {"log.dirs": f"{home / first},{home / second}", "metadata.log.dir": str(home / first)}


def live(home: Path, first: str, second: str) -> None:
    async def scenario() -> None:
        async with running(home, settings(home, first, second)) as inside:
            if inside.broker.metadata.topics.get("t") is None:
                await inside.create("t", 4)

    asyncio.run(scenario())


def refusal(home: Path, first: str, second: str) -> str:
    config = BrokerConfig.parse({**PROPERTIES, **VOTERS, **settings(home, first, second)})
    with pytest.raises(CannotStart) as refused:
        check_memory(RealDisk(), config)
    return str(refused.value)


def test_a_voter_whose_metadata_volume_is_new_does_not_start(tmp_path: Path) -> None:
    live(tmp_path, "a", "b")
    shutil.rmtree(tmp_path / "a")
    assert "holds no metadata log, and node 1 has run before" in refusal(tmp_path, "a", "b")


def test_a_voter_whose_directories_are_reordered_does_not_start(tmp_path: Path) -> None:
    live(tmp_path, "a", "b")
    assert str(tmp_path / "a" / "__cluster_metadata-0") in refusal(tmp_path, "b", "a")
    live(tmp_path, "a", "b")


def test_a_new_voter_starts_beside_directories_of_others(tmp_path: Path) -> None:
    (tmp_path / "b" / "lost+found").mkdir(parents=True)
    (tmp_path / "a" / "backup-20261127").mkdir(parents=True)
    (tmp_path / "a" / "backup-20261127" / "dump.sql").write_text("insert into orders values (1)")
    config = BrokerConfig.parse({**PROPERTIES, **VOTERS, **settings(tmp_path, "a", "b")})
    check_memory(RealDisk(), config)
    live(tmp_path, "a", "b")


def test_the_first_stop_of_a_new_log_leaves_a_snapshot_that_the_next_start_believes(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    live(tmp_path, "a", "b")
    live(tmp_path, "a", "b")
    assert [path.suffix for path in (tmp_path / "a" / "__cluster_metadata-0").glob("*.snapshot")] == [".snapshot"]
    assert [record for record in caplog.records if record.getMessage() == "snapshot.not_believed"] == []
