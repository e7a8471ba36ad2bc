"""What a clean stop leaves behind."""

import asyncio
import json
from pathlib import Path

from tests.support.in_process import running


def test_the_mark_of_a_clean_stop_has_the_epoch_of_the_registration(tmp_path: Path) -> None:
    """Apache Kafka takes any other epoch for a crash, and empties the in-sync replicas of every partition."""

    async def scenario() -> int:
        async with running(tmp_path) as inside:
            registration = inside.broker.metadata.brokers.get(inside.broker.node_id)
            assert registration is not None
            return registration.epoch

    epoch = asyncio.run(scenario())

    assert json.loads((tmp_path / ".kafka_cleanshutdown").read_text())["brokerEpoch"] == epoch
