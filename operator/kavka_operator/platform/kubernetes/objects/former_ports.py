"""The ports of nodes that still run with former settings, which Services and policies keep open. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Ports:
    """The ports of one node, by its settings. `clients` are those of brokers by listener, in their order."""

    clients: tuple[tuple[str, int], ...] = ()
    controller: int | None = None
    metrics: int | None = None
    among_nodes: int | None = None


@dataclass(frozen=True, slots=True)
class Former:
    """The ports of the nodes that are not level yet, each with those that it has."""

    ports: tuple[Ports, ...] = ()

    @property
    def first(self) -> list[tuple[str, int]]:
        """The listeners at which such brokers are begun with, with their ports."""
        return _each((name, port) for found in self.ports for name, port in found.clients[:1])

    @property
    def clients(self) -> list[tuple[str, int]]:
        """All listeners of such brokers, with their ports."""
        return _each((name, port) for found in self.ports for name, port in found.clients)

    @property
    def open(self) -> list[int]:
        """The ports that anybody may come to."""
        metrics = [found.metrics for found in self.ports if found.metrics is not None]
        return sorted({*(port for _, port in self.clients), *metrics})

    @property
    def controllers(self) -> list[int]:
        """The ports that controllers use among themselves."""
        return sorted({found.controller for found in self.ports if found.controller is not None})


def _each(pairs: Iterable[tuple[str, int]]) -> list[tuple[str, int]]:
    return list(dict.fromkeys(pairs))
