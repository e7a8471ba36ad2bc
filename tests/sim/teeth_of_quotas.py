"""Defects of quotas that we plant to see that the simulation finds them; `teething` says how."""

from kavka_broker.net.connection import Connection
from kavka_broker.quotas.byte_quota import ByteQuota
from kavka_broker.quotas.request_quota import RequestQuota
from kavka_broker.quotas.topic_quota import TopicQuota
from tests.sim.teething import Patch, tooth


@tooth("nothing is charged to any quota", "kill isolate", 5, workloads="throttled", hectic=True)
def quotas_that_charge_nothing(patch: Patch) -> None:
    patch.setattr(ByteQuota, "charge", lambda *_: 0)
    patch.setattr(RequestQuota, "charge", lambda *_: 0)


@tooth("topics charge nothing of their limits", "kill isolate", 5, workloads="throttled", hectic=True)
def topics_that_charge_nothing(patch: Patch) -> None:
    patch.setattr(TopicQuota, "limit", lambda *_: None)


@tooth("a connection that was held is not heard again when its delay is over", "kill", 5, workloads="throttled")
def connections_held_for_good(patch: Patch) -> None:
    patch.setattr(Connection, "_unmute", lambda self: None)
