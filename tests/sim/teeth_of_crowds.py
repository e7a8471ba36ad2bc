"""Defects of who is let in, and who waits."""

from typing import Any

from kavka_broker.net.connection_quotas import ConnectionQuotas
from tests.sim.teething import Patch, tooth


@tooth("a listener takes connections whatever it has already", "reset", 3, workloads="crowds")
def bound_of_connections_ignored(patch: Patch) -> None:
    patch.setattr(ConnectionQuotas, "has_room", lambda *_: True)


@tooth("nobody hears of it when a connection leaves", "reset", 3, workloads="crowds")
def room_not_told_of(patch: Patch) -> None:
    patch.setattr(ConnectionQuotas, "_tell_all", lambda self: None)


@tooth("brokers wait for room as clients do", "reset kill", 5, workloads="crowds")
def brokers_wait_for_room(patch: Patch) -> None:
    patch.setattr(ConnectionQuotas, "_is_protected", lambda *_: False)


@tooth("who has left counts still among the connections of an address", "reset", 5, workloads="crowds")
def address_counts_for_ever(patch: Patch) -> None:
    def release(self: ConnectionQuotas, listener: str, connection: Any, address: str) -> None:
        self._leaving.pop(connection, None)
        self.give_back(listener)

    patch.setattr(ConnectionQuotas, "release", release)
