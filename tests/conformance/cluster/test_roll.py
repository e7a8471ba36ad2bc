"""A controlled roll: every node is stopped and started in turn, and producers hardly notice.

A broker that is asked to stop first hands over what it leads; the active controller names its successors and resigns.
"""

import threading
from pathlib import Path

import pytest

from tests.conformance.cluster.history import History, create_topic, is_whole, within
from tests.conformance.cluster.test_failover import GAP_SECONDS_MAX, SETTINGS
from tests.support.nodes import cluster
from tests.support.servers import Server, is_apache_kafka

pytestmark = pytest.mark.slow


def test_nothing_is_lost_when_every_node_stops_in_turn(tmp_path: Path) -> None:
    with cluster(tmp_path, settings=SETTINGS) as nodes:
        admin = create_topic(nodes)
        for node_id in nodes.broker_ids:
            history = History(nodes)
            history.produce(0.5)
            statuses: list[int] = []
            stopping = threading.Thread(target=stop, args=(nodes[node_id], statuses))
            stopping.start()
            history.produce(2)
            stopping.join()
            history.finish()
            if not is_apache_kafka():
                assert statuses == [0]
                assert history.longest_gap() < GAP_SECONDS_MAX
            nodes.start(node_id)
            within(f"node {node_id} in sync", lambda: is_whole(admin))
            history.check()


def stop(node: Server, statuses: list[int]) -> None:
    statuses.append(node.stop())


def test_all_stop_at_once(tmp_path: Path) -> None:
    """The last ones find no quorum to ask, and stop all the same."""
    with cluster(tmp_path, settings=SETTINGS) as nodes:
        admin = create_topic(nodes)
        history = History(nodes)
        history.produce(0.5)
        history.finish()
        stopping = [threading.Thread(target=nodes[node_id].stop) for node_id in nodes.broker_ids]
        for thread in stopping:
            thread.start()
        for thread in stopping:
            thread.join()
        nodes.start()
        within("in sync", lambda: is_whole(admin))
        history.check()
