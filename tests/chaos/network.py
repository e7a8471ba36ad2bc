"""The network between the nodes: this machine's loopback, or one that can be cut.

As root the whole run moves into namespaces of its own (`enter`): a bridge with the clients on it, and for each node a
namespace with one cable to the bridge and an address. The machine's own network is not touched, and all of it is gone
with the processes. Without root the nodes share 127.0.0.1, and nothing can be cut.

A cut has a direction. The sender is told a hardware address for its peer that nobody has, so its packets get lost
without a word: no error, no reset, as with a broken switch. Both directions cut make a partition; one makes a
half-open connection, which is worse.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from tests.support.servers import free_port

MARK: Final = "KAVKA_CHAOS_NAMESPACE"
CLIENTS_ADDRESS: Final = "10.77.0.100"
NOBODY: Final = "02:00:00:00:00:ff"
BROKER_PORT: Final = 9092
CONTROLLER_PORT: Final = 9093
PROXY_PORT: Final = 9094


def enter(arguments: Sequence[str]) -> None:
    """Go on in namespaces of our own; returns where this is so already, or cannot be."""
    if os.geteuid() != 0 or os.environ.get(MARK):
        return
    os.environ[MARK] = "1"
    os.execvp("unshare", ["unshare", "--net", "--mount", "--", sys.executable, *arguments])


def run(*command: str) -> None:
    """One command that has to succeed."""
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, f"{' '.join(command)}: {ran.stderr}"


class Network(Protocol):
    """Where nodes live, and how they are cut off from each other."""

    can_cut: bool

    def address(self, node_id: int) -> tuple[str, int]:
        """Where clients and brokers reach a node."""
        ...

    def controller_address(self, node_id: int) -> tuple[str, int]:
        """Where other nodes reach its controller."""
        ...

    def listening_port(self, node_id: int) -> int:
        """Where its controller listens: behind a proxy, where there is one."""
        ...

    def prefix(self, node_id: int) -> list[str]:
        """What to put before a command so that it runs where the node lives."""
        ...

    def cut(self, sender: int, receiver: int) -> None:
        """Nothing from `sender` arrives at `receiver` any more; 0 stands for the clients."""
        ...

    def heal(self) -> None: ...

    def close(self) -> None: ...


class Loopback:
    """All nodes on 127.0.0.1."""

    can_cut = False

    def __init__(self) -> None:
        self._ports: dict[tuple[int, str], int] = {}

    def _port(self, node_id: int, what: str) -> int:
        if (node_id, what) not in self._ports:
            self._ports[node_id, what] = free_port()
        return self._ports[node_id, what]

    def address(self, node_id: int) -> tuple[str, int]:
        return "127.0.0.1", self._port(node_id, "broker")

    def controller_address(self, node_id: int) -> tuple[str, int]:
        return "127.0.0.1", self._port(node_id, "controller")

    def listening_port(self, node_id: int) -> int:
        return self._port(node_id, "controller")

    def prefix(self, node_id: int) -> list[str]:
        return []

    def cut(self, sender: int, receiver: int) -> None:
        raise AssertionError("loopback cannot be cut")

    def heal(self) -> None:
        return

    def close(self) -> None:
        return


def dying_with_us() -> list[str]:
    """What to put before a command so that Linux ends it when we end, however that comes about."""
    return ["setpriv", "--pdeathsig", "KILL", "--"] if shutil.which("setpriv") else []


@dataclass(slots=True)
class Bridged:
    """A bridge, and a namespace for each node; made inside a namespace that is ours alone."""

    node_ids: Sequence[int]
    can_cut: bool = True
    _holders: dict[int, subprocess.Popen[bytes]] = field(default_factory=dict)
    _cuts: set[tuple[int, int]] = field(default_factory=set)

    def __post_init__(self) -> None:
        run("ip", "link", "set", "lo", "up")
        run("ip", "link", "add", "hub", "type", "bridge")
        run("ip", "address", "add", f"{CLIENTS_ADDRESS}/24", "dev", "hub")
        run("ip", "link", "set", "hub", "up")
        for node_id in self.node_ids:
            self._plug_in(node_id)

    def _plug_in(self, node_id: int) -> None:
        # The namespace lives as long as a process in it does.
        holder = subprocess.Popen([*dying_with_us(), "unshare", "--net", "--", "cat"], stdin=subprocess.PIPE)
        self._holders[node_id] = holder
        while os.readlink(f"/proc/{holder.pid}/ns/net") == os.readlink("/proc/self/ns/net"):
            os.sched_yield()
        cable = f"node{node_id}"
        run("ip", "link", "add", cable, "type", "veth", "peer", "name", "eth0", "netns", str(holder.pid))
        run("ip", "link", "set", cable, "master", "hub", "up")
        for command in (
            ("link", "set", "lo", "up"),
            ("address", "add", f"{self.address(node_id)[0]}/24", "dev", "eth0"),
            ("link", "set", "eth0", "up"),
        ):
            run(*self.prefix(node_id), "ip", *command)

    def address(self, node_id: int) -> tuple[str, int]:
        return (f"10.77.0.{node_id}" if node_id else CLIENTS_ADDRESS), BROKER_PORT

    def controller_address(self, node_id: int) -> tuple[str, int]:
        return self.address(node_id)[0], PROXY_PORT

    def listening_port(self, node_id: int) -> int:
        return CONTROLLER_PORT

    def prefix(self, node_id: int) -> list[str]:
        if node_id == 0:
            return []
        return ["nsenter", f"--net=/proc/{self._holders[node_id].pid}/ns/net", "--"]

    def cut(self, sender: int, receiver: int) -> None:
        self._cuts.add((sender, receiver))
        self._neighbour(sender, receiver, "replace", "lladdr", NOBODY, "nud", "permanent")

    def heal(self) -> None:
        while self._cuts:
            self._neighbour(*self._cuts.pop(), "del")

    def _neighbour(self, sender: int, receiver: int, verb: str, *how: str) -> None:
        cable = "eth0" if sender else "hub"
        run(*self.prefix(sender), "ip", "neigh", verb, self.address(receiver)[0], *how, "dev", cable)

    def close(self) -> None:
        for holder in self._holders.values():
            holder.kill()
            holder.wait()


def network(node_ids: Sequence[int]) -> Network:
    """The best that this process may have."""
    return Bridged(node_ids) if os.environ.get(MARK) else Loopback()
