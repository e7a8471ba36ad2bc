"""`kavka-operator`: the operator's process on Kubernetes."""

from typing import Any

import kopf

from kavka_operator.handlers import kinds
from kavka_operator.handlers.desk import Desk
from kavka_operator.kafka.client import KafkaClient
from kavka_operator.platform.kubernetes import KubernetesPlatform

WATCH_SECONDS_MAX = 300
LIVENESS = "http://0.0.0.0:8080/healthz"

HANDLERS = (kinds.on_cluster, kinds.on_topic, kinds.on_quota)


@kopf.on.startup()
async def start(settings: kopf.OperatorSettings, memo: kopf.Memo, **_: Any) -> None:
    """Put the desk where the handlers find it."""
    settings.watching.server_timeout = WATCH_SECONDS_MAX
    settings.posting.enabled = False
    memo.desk = Desk(KubernetesPlatform(), KafkaClient)


@kopf.on.cleanup()
async def stop(memo: kopf.Memo, **_: Any) -> None:
    """Close the connections to the clusters."""
    memo.desk.close()


def main() -> None:
    """Run until a signal ends it."""
    kopf.run(clusterwide=True, standalone=True, liveness_endpoint=LIVENESS)


if __name__ == "__main__":
    main()
