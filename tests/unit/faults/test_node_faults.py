"""What a test tells the processes of brokers, through files."""

from pathlib import Path

import pytest

from kavka_pytest.brokers import KafkaError
from kavka_pytest.harmed_nodes import HarmedNodes
from kavka_pytest.node_faults import NodeFault, read_fault, write_applied
from kavka_pytest.processes import ports_of

PORTS = {0: [9000, 9001], 1: [9100, 9101], 2: [9200, 9201]}


def told(directory: Path) -> dict[int, NodeFault]:
    return {node: read_fault(directory, node) for node in PORTS}


def test_an_isolated_node_and_the_others_reach_each_other_no_more(tmp_path: Path) -> None:
    faults = HarmedNodes(tmp_path, lambda: PORTS)
    faults.isolated.add(1)
    faults.tell()
    assert {node: fault.cut_ports for node, fault in told(tmp_path).items()} == {
        0: (9100, 9101),
        1: (9000, 9001, 9200, 9201),
        2: (9100, 9101),
    }
    faults.isolated.clear()
    faults.tell()
    assert [(fault.number, fault.cut_ports) for fault in told(tmp_path).values()] == [(2, ())] * 3


def test_a_node_is_told_of_what_has_changed_and_waited_for(tmp_path: Path) -> None:
    faults = HarmedNodes(tmp_path, lambda: PORTS)
    faults.full.add(2)
    faults.tell()
    faults.tell()
    assert told(tmp_path) == {0: NodeFault(), 1: NodeFault(), 2: NodeFault(1, is_disk_full=True)}
    with pytest.raises(KafkaError, match="nodes 2 have not applied"):
        faults.apply(0.0)
    write_applied(tmp_path, 2, 1)
    faults.apply(0.0)
    with pytest.raises(KafkaError, match="no node 7; there are 0, 1, 2"):
        faults.harm(faults.full, 7)


def test_a_fault_that_a_node_has_not_applied_is_taken_back(tmp_path: Path) -> None:
    faults = HarmedNodes(tmp_path, lambda: PORTS)
    faults.seconds_max = 0.0
    with pytest.raises(KafkaError, match="nodes 2 have not applied"):
        faults.harm(faults.full, 2)
    assert faults.full == set()
    assert told(tmp_path)[2] == NodeFault(2)


def test_the_ports_of_a_node_are_those_of_all_its_listeners() -> None:
    text = "node.id=1\nlisteners=PLAINTEXT\\://127.0.0.1\\:9100,CONTROLLER\\://[\\:\\:1]\\:9101\nlog.dirs=/a\n"
    assert ports_of(text) == [9100, 9101]
    assert ports_of("node.id=1\n") == []
