"""The log directories of a node of this machine, before it is started on them."""

import shutil
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from kavka_operator.api.pools import NodePool
from kavka_operator.loop.interfaces import PlatformUnavailableError
from kavka_operator.platform.local import node_processes
from kavka_operator.platform.local.layout import Layout
from kavka_operator.platform.local.node_directories import NodeDirectories
from kavka_operator.platform.local.server_properties import LocalNode
from kavka_operator.platform.nodes import Node

CLUSTER = "cluster-one"
POOL = NodePool.decode({"name": "nodes", "storage": {"volumes": [{"name": "d0"}, {"name": "d1"}]}})
NODE = LocalNode(Node(0, POOL, None), "127.0.0.1", (9092,), "127.0.0.1:9092", "node.id=0\n", None)
FAILING = (sys.executable, "-c", "print('there is no room'); raise SystemExit(3)")
FORMATTING = """
import sys
config, cluster = sys.argv[3], sys.argv[4].partition("=")[2]
data = config.rpartition("/config/")[0] + "/data/node-0"
for name in ("d0", "d1"):
    with open(f"{data}/{name}/meta.properties", "w") as file:
        file.write(f"cluster.id={cluster}\\ndirectory.id=id-of-{name}\\n")
"""


@pytest.fixture
def directories(tmp_path: Path) -> NodeDirectories:
    layout = Layout.of(tmp_path, "default", "main")
    layout.make()
    layout.properties(0).write_text(NODE.properties)
    return NodeDirectories(layout, CLUSTER)


@pytest.fixture
def brokers(monkeypatch: pytest.MonkeyPatch) -> Callable[[tuple[str, ...]], None]:
    """Sets the command that is run as a broker."""
    return partial(monkeypatch.setattr, node_processes, "BROKER")


def formatted(directories: NodeDirectories, cluster_id: str = CLUSTER) -> list[Path]:
    """The directories of the node, as a broker has formatted them."""
    paths = [directories.layout.data(0) / name for name in NODE.volumes]
    for path in paths:
        path.mkdir(parents=True)
        (path / "meta.properties").write_text(f"cluster.id={cluster_id}\ndirectory.id=id-of-{path.name}\n")
    return paths


def test_a_new_node_is_formatted_and_its_directories_are_noted(
    directories: NodeDirectories, brokers: Callable[[tuple[str, ...]], None]
) -> None:
    brokers((sys.executable, "-c", FORMATTING))
    directories.prepare(NODE)
    assert {volume.name: volume.directory_id for volume in directories.seen(0)} == {"d0": "id-of-d0", "d1": "id-of-d1"}
    assert directories.fault(NODE) is None


def test_directories_that_are_formatted_are_left_as_they_are(
    directories: NodeDirectories, brokers: Callable[[tuple[str, ...]], None]
) -> None:
    formatted(directories)
    brokers(FAILING)
    directories.prepare(NODE)
    assert [volume.directory_id for volume in directories.seen(0)] == ["id-of-d0", "id-of-d1"]


def test_a_directory_that_cannot_be_formatted_is_told_in_the_brokers_words(
    directories: NodeDirectories, brokers: Callable[[tuple[str, ...]], None]
) -> None:
    brokers(FAILING)
    with pytest.raises(PlatformUnavailableError, match="node 0 could not be formatted: there is no room"):
        directories.prepare(NODE)


def test_a_directory_of_another_cluster_is_not_touched(directories: NodeDirectories) -> None:
    paths = formatted(directories, "another")
    with pytest.raises(PlatformUnavailableError, match=f"belongs to cluster another, and this is {CLUSTER}"):
        directories.prepare(NODE)
    assert [path.name for path in paths[0].iterdir()] == ["meta.properties"]


def test_a_volume_that_has_vanished_is_missed_until_it_is_given_up(directories: NodeDirectories) -> None:
    _, second = formatted(directories)
    directories.prepare(NODE)
    assert directories.fault(NODE) is None
    shutil.rmtree(second)
    assert "d1" in (directories.fault(NODE) or "")
    directories.given_up = ("id-of-d1",)
    assert directories.fault(NODE) is None
