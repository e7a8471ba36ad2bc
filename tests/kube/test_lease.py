"""An API server that is slow to answer, and then not at all, and an operator's lease."""

import asyncio
from pathlib import Path

from tests.kube.cluster import Kubernetes
from tests.kube.test_operator import CLUSTER, Operated, broker, holder, own_topic
from tests.support.faulty_api import Asked, Fault, faulty
from tests.support.servers import Server

__all__ = ["broker"]

SLOW_SECONDS = 2.2


class SlowLeases(Fault):
    """Whatever asks for a Lease waits for so long."""

    seconds = SLOW_SECONDS
    answers = 0

    async def hold_up(self, asked: Asked) -> None:
        if "/leases" in asked.path:
            self.answers += 1
            await asyncio.sleep(self.seconds)


def test_slow_answers_do_not_stop_the_operator_and_it_acts_again_after_none(
    kubernetes: Kubernetes,
    broker: Server,
    tmp_path: Path,
) -> None:
    fault = SlowLeases()
    with faulty(kubernetes.plane, fault) as api:
        scene = Operated(kubernetes, broker, tmp_path / "operator.log")
        assert kubernetes.create(CLUSTER).is_well
        config = str(api.kubeconfig(tmp_path / "kubeconfig"))
        scene.start(POD_NAMESPACE=kubernetes.namespace, POD_NAME="only", KUBECONFIG=config)
        try:
            scene.until(lambda: holder(scene) == "only")
            assert kubernetes.create(own_topic(scene, "one", partitions=1)).is_well
            scene.until_ready(("Topic", "one"))
            answers = fault.answers
            scene.until(lambda: fault.answers >= answers + 3)
            assert "lease.lost" not in scene.log.read_text()
            fault.seconds = 1000.0
            scene.until(lambda: "lease.awaited" in scene.log.read_text())
            fault.seconds = 0.0
            assert kubernetes.create(own_topic(scene, "two", partitions=1)).is_well
            scene.until_ready(("Topic", "two"))
            assert scene.running is not None
            scene.running.terminate()
            assert scene.running.wait(60) == 0, "it hears signals again"
            assert holder(scene) == "", "and has given the lease back"
        finally:
            scene.stop()
