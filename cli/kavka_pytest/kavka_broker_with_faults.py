"""A broker's process whose test may fill its disk and cut it off from other brokers: `kavka-broker` with two faults.

`kavka_pytest.up_with_faults` has `kavka up` start it in the broker's place. The broker itself has no switch for faults:
it runs in a world with another disk, on a loop that opens connections under conditions.

A cut between brokers is on the side of the one that connects, which each of them does: connections that are open end,
and new ones are refused.
"""

import asyncio
import os
import sys
from dataclasses import replace
from errno import ECONNREFUSED
from pathlib import Path
from typing import Any, Final

from kavka_broker import cli
from kavka_broker.runtime.environment import REAL
from kavka_broker.runtime.event_loop import new_event_loop
from kavka_broker.runtime.process import run_until_stopped
from kavka_pytest.full_disk import FillableDisk
from kavka_pytest.node_faults import VARIABLE, NodeFault, read_fault, write_applied

LOOK_SECONDS: Final = 0.02


class Wires:
    """The connections that a loop has opened, by the ports that they lead to."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._connect = loop.create_connection
        self._open: list[tuple[int, asyncio.Transport]] = []
        self._cut: frozenset[int] = frozenset()
        setattr(loop, "create_connection", self._connect_unless_cut)  # noqa: B010 - its overloads are many

    def cut(self, ports: frozenset[int]) -> None:
        """End the connections to these ports, and refuse new ones; others may be made again."""
        self._cut = ports
        for port, transport in self._open:
            if port in ports:
                transport.abort()

    async def _connect_unless_cut(self, factory: Any, host: Any = None, port: Any = None, **options: Any) -> Any:
        if port in self._cut:
            raise ConnectionRefusedError(ECONNREFUSED, f"the test has cut {host}:{port} off")
        transport, protocol = await self._connect(factory, host, port, **options)
        if port in self._cut:  # since the connection was begun
            transport.abort()
            raise ConnectionRefusedError(ECONNREFUSED, f"the test has cut {host}:{port} off")
        self._open = [entry for entry in self._open if not entry[1].is_closing()]
        self._open.append((int(port), transport))
        return transport, protocol


class Faults:
    """Applies the faults of a node, when it starts and whenever they change."""

    def __init__(self, directory: Path, node: int, disk: FillableDisk) -> None:
        self._directory, self._node, self._disk = directory, node, disk
        self._applied = -1

    def loop(self, name: str) -> asyncio.AbstractEventLoop:
        """Make the loop of the broker, under these faults."""
        loop = new_event_loop(name)
        self._look(loop, Wires(loop))
        return loop

    def _look(self, loop: asyncio.AbstractEventLoop, wires: Wires) -> None:
        fault = read_fault(self._directory, self._node)
        if fault.number != self._applied:
            self._apply(fault, wires)
        loop.call_later(LOOK_SECONDS, self._look, loop, wires)

    def _apply(self, fault: NodeFault, wires: Wires) -> None:
        self._disk.is_full = fault.is_disk_full
        wires.cut(frozenset(fault.cut_ports))
        self._applied = fault.number
        write_applied(self._directory, self._node, fault.number)


def main() -> None:
    """Run `kavka-broker`; `run` under the faults of the directory that the environment names."""
    options = cli.parser().parse_args()
    if options.command != "run":
        cli.main()
    config = cli.read_config(options.config, options.override)
    disk = FillableDisk()
    faults = Faults(Path(os.environ[VARIABLE]), config.node_id, disk)
    sys.exit(run_until_stopped(config, replace(REAL, disk=disk), faults.loop))


if __name__ == "__main__":
    main()
