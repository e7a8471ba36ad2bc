"""A broker's directories are cordoned as its configuration says, and the controller hears of it."""

from typing import Any

from kavka_broker.core.config.broker import BrokerConfig
from kavka_broker.core.metadata.image.features import CORDONED_SINCE
from kavka_broker.runtime.cordoning import Cordoning
from kavka_broker.storage.log_manager import LogManager
from tests.support.sim_disk import SimDisk
from tests.unit.storage.support import config as log_config
from tests.unit.storage.test_log_manager import ID, formatted, start


class Told:
    """A lifecycle that counts how often it is to tell."""

    def __init__(self) -> None:
        self.cordoned_directories: list[bytes] = []
        self.times = 0

    def tell(self) -> None:
        self.times += 1


class Level:
    """An image of some metadata.version."""

    def __init__(self, metadata_version: int) -> None:
        self.features = self
        self.metadata_version = metadata_version


def broker(cordoned: str) -> BrokerConfig:
    values = {"node.id": "1", "process.roles": "broker", "controller.listener.names": "C"}
    values |= {"controller.quorum.bootstrap.servers": "localhost:1", "log.dirs": "/a,/b", "cordoned.log.dirs": cordoned}
    return BrokerConfig.parse(values)


def logs() -> LogManager:
    disk: SimDisk = formatted("/a", "/b")
    return start(disk, "/a", "/b")


def following(level: int = CORDONED_SINCE) -> tuple[Cordoning, LogManager, Told]:
    manager, lifecycle = logs(), Told()
    image: Any = Level(level)
    told: Any = lifecycle
    return Cordoning(manager, told, image), manager, lifecycle


def test_new_logs_go_to_directories_that_are_not_cordoned_and_the_controller_is_told() -> None:
    cordoning, manager, lifecycle = following()
    cordoning.follow(broker("/a"))
    made = [manager.create("t", number, ID, log_config()) for number in range(3)]
    assert {log.directory.rpartition("/")[0] for log in made} == {"/b"}
    first, _ = manager.directories
    assert lifecycle.cordoned_directories == [first.directory_id]
    assert lifecycle.times == 1
    cordoning.follow(broker("/a"))
    assert lifecycle.times == 1
    cordoning.follow(broker(""))
    assert manager.create("t", 3, ID, log_config()).directory == "/a/t-3"
    assert (lifecycle.cordoned_directories, lifecycle.times) == ([], 2)


def test_a_replica_that_comes_all_the_same_has_its_log_where_all_are_cordoned() -> None:
    cordoning, manager, _ = following()
    cordoning.follow(broker("*"))
    assert manager.create("t", 0, ID, log_config()).directory == "/a/t-0"
    wanted = manager.directories[1].directory_id
    assert manager.create("t", 1, ID, log_config(), 0, wanted).directory == "/b/t-1"
