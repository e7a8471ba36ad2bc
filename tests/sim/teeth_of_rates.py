"""Defects of the rates of connections, and of pushed metrics, that the simulation has to find; `teething` says how."""

from typing import Any

from kavka_broker.core.telemetry.instances import Instance
from kavka_broker.net import connection_rates
from kavka_broker.net.connection_rates import ConnectionRates
from kavka_broker.telemetry.client_metrics import ClientMetrics
from tests.sim.teething import Patch, tooth


@tooth("connections above the rate of their address are served", "kill", 5, workloads="rushing")
def rates_of_addresses_ignored(patch: Patch) -> None:
    patch.setattr(ConnectionRates, "admit", lambda *_: 0)


@tooth("the rate of one address holds for all", "kill", 5, workloads="rushing", hectic=True)
def rates_of_one_for_all(patch: Patch) -> None:
    def resolve_ip(limits: Any, _: str) -> float | None:
        return min(limits.values(), default=None) and 0.5

    patch.setattr(connection_rates, "resolve_ip", resolve_ip)


@tooth("a client pushes as often as it likes", "kill", 5, workloads="rushing")
def pushes_at_any_time(patch: Patch) -> None:
    patch.setattr(Instance, "take_push", lambda *_: True)


@tooth("a client instance outlives its connection", "kill", 5, workloads="rushing", hectic=True)
def instances_for_ever(patch: Patch) -> None:
    patch.setattr(ClientMetrics, "lost", lambda *_: None)
