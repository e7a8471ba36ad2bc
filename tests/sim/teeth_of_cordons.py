"""Defects of cordoned directories that we plant to see that the simulation finds them; `teething` says how."""

from typing import Any

from kavka_broker.core.metadata.image.brokers import Registration
from kavka_broker.runtime.cordoning import Cordoning
from tests.sim.teething import Patch, tooth


@tooth("a partition begins on a broker that is cordoned", "kill pause", 5, workloads="cordons", hectic=True)
def placed_on_the_cordoned(patch: Patch) -> None:
    patch.setattr(Registration, "takes_replicas", property(lambda _: True))


@tooth("a broker does not tell that it is cordoned no more", "kill pause", 5, workloads="cordons", hectic=True)
def release_not_told(patch: Patch) -> None:
    follow = Cordoning.follow

    def reluctant(self: Cordoning, config: Any) -> None:
        if config["cordoned.log.dirs"] or not self._lifecycle.cordoned_directories:
            follow(self, config)

    patch.setattr(Cordoning, "follow", reluctant)
