"""What goes wrong, one thing at a time or two: each strikes, lasts a while, and is undone by `Cluster.start_all`.

At most a minority of the nodes is harmed in a way that costs data (a loss of power, a disk, damage), so nothing
acknowledged may be lost. All of them may die or stop at once: then the cluster is away, and must be back by itself.
"""

from typing import Final

from tests.chaos.nemeses import network, processes, storage
from tests.chaos.nemeses.nemesis import Nemesis

__all__ = ["ALL", "Nemesis"]

ALL: Final = (*processes.ALL, *network.ALL, *storage.ALL)
