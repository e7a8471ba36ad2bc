"""Apache Kafka's own tools for clusters, against three nodes."""

import contextlib
import json
import re
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.asking import Seen, partitions_of
from tests.chaos.nodes import Cluster
from tests.conformance.cluster_tools.conftest import NODE_IDS, Tool
from tests.support.programs import kafka_tool, metadata_shell
from tools.ktool import command

pytestmark = [pytest.mark.java, pytest.mark.slow]

EVENTUALLY_SECONDS = 150.0


def eventually(holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + EVENTUALLY_SECONDS
    while not holds():
        assert time.monotonic() < deadline, f"not within {EVENTUALLY_SECONDS:g} s: {what}"
        time.sleep(0.1)


def seen(cluster: Cluster, topic: str) -> list[Seen]:
    """The partitions as the first node that runs tells them, once it knows the topic."""
    node = next(node for node in cluster.nodes if node.process is not None)
    found: list[Seen] = []

    def is_known() -> bool:
        with contextlib.suppress(OSError):
            found[:] = partitions_of(node.address, topic)
        return bool(found)

    eventually(is_known, f"node {node.node_id} knows {topic}")
    return found


def are_whole(cluster: Cluster, topic: str) -> Callable[[], bool]:
    return lambda: all(partition.is_whole for partition in seen(cluster, topic))


def listed(cluster: Cluster) -> dict[int, str]:
    """Whether each broker is fenced, in the tool's words."""
    said = kafka_tool("cluster", "list-endpoints", "--bootstrap-server", cluster.bootstrap, "--include-fenced-brokers")
    rows = [line.split() for line in said.splitlines()[1:] if line.strip()]
    return {int(row[0]): row[4] for row in rows}


def settings_of(tool: Tool, broker: int) -> str:
    """What was altered of a broker, as it tells itself."""
    return tool("configs", "--describe", "--entity-type", "brokers", "--entity-name", str(broker))


def test_metadata_quorum_tells_the_leader_and_how_far_the_voters_are(cluster: Cluster, tool: Tool) -> None:
    status = tool("metadata-quorum", "describe", "--status")
    fields = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    assert int(fields["LeaderId"]) in NODE_IDS
    assert int(fields["LeaderEpoch"]) >= 1
    assert int(fields["HighWatermark"]) > 0
    voters = json.loads(fields["CurrentVoters"])
    assert sorted(voter["id"] for voter in voters) == list(NODE_IDS)
    assert all(voter["directoryId"] and voter["endpoints"] for voter in voters)
    replication = tool("metadata-quorum", "describe", "--replication").splitlines()
    assert replication[0].split() == [
        "NodeId", "DirectoryId", "LogEndOffset", "Lag", "LastFetchTimestamp", "LastCaughtUpTimestamp", "Status",
    ]  # fmt: skip
    rows = [line.split() for line in replication[1:] if line.strip()]
    assert sorted(int(row[0]) for row in rows) == list(NODE_IDS)
    assert sorted(row[-1] for row in rows) == ["Follower", "Follower", "Leader"]


def test_topics_lists_partitions_by_their_state(cluster: Cluster, tool: Tool, topic: str) -> None:
    eventually(are_whole(cluster, topic), "all replicas in sync")
    lists = ("--under-replicated-partitions", "--under-min-isr-partitions", "--unavailable-partitions")
    for option in lists:
        assert tool("topics", "--describe", "--topic", topic, option).strip() == ""
    victim = cluster.node(3)
    victim.kill()
    try:
        eventually(lambda: all(3 not in partition.isr for partition in seen(cluster, topic)), "out of the ISR")
        listed = tool("topics", "--describe", "--topic", topic, "--under-replicated-partitions")
        assert len(listed.strip().splitlines()) == 3
        assert "Isr: 3" not in listed
        at_min = tool("topics", "--describe", "--topic", topic, "--at-min-isr-partitions")
        assert len(at_min.strip().splitlines()) == 3
        assert tool("topics", "--describe", "--topic", topic, "--unavailable-partitions").strip() == ""
    finally:
        victim.start()
        cluster.wait_ready()
    eventually(are_whole(cluster, topic), "back in the ISR")


def test_leader_election_brings_the_preferred_leaders_back(cluster: Cluster, tool: Tool, topic: str) -> None:
    preferred = {partition.index: partition.replicas[0] for partition in seen(cluster, topic)}
    victim = cluster.node(preferred[0])
    victim.stop()
    eventually(lambda: all(partition.leader != victim.node_id for partition in seen(cluster, topic)), "others lead")
    victim.start()
    cluster.wait_ready()
    eventually(are_whole(cluster, topic), "back in the ISR")
    chosen = ("--election-type", "preferred", "--topic", topic, "--partition", "0")
    said = tool("leader-election", *chosen)
    assert "Successfully completed leader election" in said or "Valid replica already elected" in said
    eventually(lambda: seen(cluster, topic)[0].leader == preferred[0], "the preferred leader leads")
    assert "Valid replica already elected" in tool("leader-election", *chosen)


def test_leader_election_may_lose_records_when_told_to(cluster: Cluster, tool: Tool, name: str) -> None:
    """The replica that is left has stopped uncleanly outside the in-sync set: no other election would let it lead."""
    tool("topics", "--create", "--topic", name, "--replica-assignment", "3:2")
    first, second = cluster.node(3), cluster.node(2)
    second.kill()
    try:
        eventually(lambda: seen(cluster, name)[0].isr == (3,), "alone in the ISR")
        assert f"Topic: {name}" in tool("topics", "--describe", "--topic", name, "--under-min-isr-partitions")
        first.kill()
        second.start()
        eventually(lambda: seen(cluster, name)[0].leader < 0, "nobody leads")
        # Its controller may have told of that before its broker was there.
        eventually(lambda: listed(cluster)[2] == "unfenced", "the one that is left serves")
        assert f"Topic: {name}" in tool("topics", "--describe", "--topic", name, "--unavailable-partitions")
        chosen = ("--topic", name, "--partition", "0")
        assert "Successfully" in tool("leader-election", "--election-type", "unclean", *chosen)
        eventually(lambda: seen(cluster, name)[0].leader == 2, "the one that is left leads")
        assert "Valid replica already elected" in tool("leader-election", "--election-type", "unclean", *chosen)
    finally:
        cluster.start_all()
    eventually(are_whole(cluster, name), "in sync again")


def test_reassign_partitions_moves_with_a_throttle_verifies_and_takes_it_off(
    cluster: Cluster, tool: Tool, name: str, tmp_path: Path
) -> None:
    tool("topics", "--create", "--topic", name, "--replica-assignment", "1:2,2:3")
    lines = "".join(f"value-{number}\n" for number in range(1000))
    tool("console-producer", "--topic", name, stdin=lines)
    wanted = {"version": 1, "partitions": [
        {"topic": name, "partition": 0, "replicas": [3, 2]},
        {"topic": name, "partition": 1, "replicas": [3, 1]},
    ]}  # fmt: skip
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps(wanted))
    how = ("--reassignment-json-file", str(plan))
    said = tool("reassign-partitions", "--execute", *how, "--throttle", "10000000")
    assert "Successfully started partition reassignments" in said
    eventually(lambda: "follower.replication.throttled.rate=10000000" in settings_of(tool, 1), "the throttle")

    def is_done() -> bool:
        verified = tool("reassign-partitions", "--verify", *how)
        return len(re.findall(r"Reassignment of partition \S+ is completed\.", verified)) == 2

    eventually(is_done, "the reassignment")
    wanted_replicas = [(3, 2), (3, 1)]
    eventually(lambda: [one.replicas for one in seen(cluster, name)] == wanted_replicas, "the node knows of it")
    eventually(lambda: "throttled.rate" not in settings_of(tool, 1), "no throttle is left")
    assert "No partition reassignments found" in tool("reassign-partitions", "--list")
    consumed = tool("console-consumer", "--topic", name, "--from-beginning", "--max-messages", "1000")
    assert sorted(consumed.splitlines()) == sorted(lines.splitlines())


def test_reassign_partitions_shows_what_moves_and_cancels_it(
    cluster: Cluster, tool: Tool, name: str, tmp_path: Path
) -> None:
    tool("topics", "--create", "--topic", name, "--replica-assignment", "1:2")
    # A hundred times what the throttle lets through in its window of ten seconds.
    tool("console-producer", "--topic", name, stdin=f"{'x' * 9_999}\n" * 1000)
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"version": 1, "partitions": [{"topic": name, "partition": 0, "replicas": [3, 2]}]}))
    how = ("--reassignment-json-file", str(plan))
    tool("reassign-partitions", "--execute", *how, "--throttle", "10000")
    assert f"{name}-0: replicas: 3,2,1. adding: 3. removing: 1." in tool("reassign-partitions", "--list")
    assert "is still in progress" in tool("reassign-partitions", "--verify", *how)
    assert "Adding Replicas: 3" in tool("topics", "--describe", "--topic", name)
    cancelled = tool("reassign-partitions", "--cancel", *how)
    assert f"Successfully cancelled partition reassignment for: {name}-0" in cancelled
    assert "No partition reassignments found" in tool("reassign-partitions", "--list")

    def is_as_before() -> bool:
        (partition,) = seen(cluster, name)
        return sorted(partition.replicas) == sorted(partition.isr) == [1, 2]

    eventually(is_as_before, "the replicas are where they were")
    eventually(lambda: "throttled.rate" not in settings_of(tool, 3), "no throttle is left")


def test_reassign_partitions_generates_a_plan(cluster: Cluster, tool: Tool, topic: str, tmp_path: Path) -> None:
    path = tmp_path / "topics.json"
    path.write_text(json.dumps({"version": 1, "topics": [{"topic": topic}]}))
    said = tool("reassign-partitions", "--generate", "--topics-to-move-json-file", str(path), "--broker-list", "1,2,3")
    proposed = json.loads(said.split("Proposed partition reassignment configuration")[1])
    assert len(proposed["partitions"]) == 3


def test_replica_verification_finds_the_replicas_alike(cluster: Cluster, tool: Tool, topic: str) -> None:
    tool("console-producer", "--topic", topic, stdin="a\nb\nc\n")
    arguments = ("--broker-list", cluster.bootstrap, "--topics-include", topic, "--report-interval-ms", "500")
    with subprocess.Popen(command("replica-verification", *arguments), stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        try:
            assert "verification process is started" in running.stdout.readline()
            assert re.search(
                r"max lag is 0 for partition \S+ at offset \d+ among 3 partitions", running.stdout.readline()
            )
        finally:
            running.kill()


def test_get_offsets_tells_where_each_partition_begins_and_ends(cluster: Cluster, tool: Tool, topic: str) -> None:
    tool("console-producer", "--topic", topic, stdin="a\nb\nc\n")
    ends = [line.split(":") for line in tool("get-offsets", "--topic", topic).split()]
    assert [int(index) for _, index, _ in ends] == [0, 1, 2]
    assert sum(int(offset) for *_, offset in ends) == 3
    begins = tool("get-offsets", "--topic", topic, "--time", "earliest").split()
    assert begins == [f"{topic}:{index}:0" for index in range(3)]


def test_log_dirs_describes_the_replicas_of_every_broker(cluster: Cluster, tool: Tool, topic: str) -> None:
    eventually(are_whole(cluster, topic), "all replicas in sync")  # each look of the tool is a JVM
    brokers: list[dict[str, Any]] = []

    def are_replicas_there() -> bool:
        said = tool("log-dirs", "--describe", "--topic-list", topic)
        (line,) = [line for line in said.splitlines() if line.startswith("{")]
        brokers[:] = json.loads(line)["brokers"]
        return sum(len(directory["partitions"]) for one in brokers for directory in one["logDirs"]) == 9

    eventually(are_replicas_there, "every broker has made its replicas")
    assert sorted(broker["broker"] for broker in brokers) == list(NODE_IDS)
    for broker in brokers:
        directories = broker["logDirs"]
        assert all(directory["error"] is None for directory in directories)
        wanted = [disk.data for disk in cluster.node(broker["broker"]).disks]
        assert sorted(Path(directory["logDir"]) for directory in directories) == sorted(wanted)
        found = [partition for directory in directories for partition in directory["partitions"]]
        assert sorted(one["partition"] for one in found) == [f"{topic}-{index}" for index in range(3)]
        assert all(one["offsetLag"] == 0 and not one["isFuture"] for one in found)


def test_features_are_described_and_refused_beyond_what_is_known(cluster: Cluster, tool: Tool) -> None:
    said = tool("features", "describe")
    assert re.search(r"Feature: metadata\.version\s.*FinalizedVersionLevel: 4\.3", said)
    assert re.search(r"Feature: kraft\.version\s.*FinalizedVersionLevel: 1", said)
    with pytest.raises(AssertionError, match=r"9999|UnsupportedVersion|InvalidUpdateVersion|could not be applied"):
        tool("features", "upgrade", "--feature", "group.version=9999")


def test_cluster_tells_its_id_and_its_nodes(cluster: Cluster, tool: Tool) -> None:
    said = kafka_tool("cluster", "cluster-id", "--bootstrap-server", cluster.bootstrap)
    assert re.search(r"Cluster ID: \S{22}", said)
    endpoints = kafka_tool("cluster", "list-endpoints", "--bootstrap-server", cluster.bootstrap)
    rows = [line.split() for line in endpoints.splitlines()[1:] if line.strip()]
    assert sorted(int(row[0]) for row in rows) == list(NODE_IDS)
    assert {row[3] for row in rows} == {"rack-1", "rack-2", "rack-3"}


def test_broker_api_versions_asks_every_node(cluster: Cluster, tool: Tool) -> None:
    said = tool("broker-api-versions")
    assert sorted(map(int, re.findall(r"\(id: (\d+) rack: rack-\d isFenced: false\) -> \(", said))) == list(NODE_IDS)
    assert re.search(r"Fetch\(1\): 4 to 18 \[usable: 18\]", said)


def test_cluster_forgets_a_broker_that_stopped_and_takes_it_back(cluster: Cluster, tool: Tool, topic: str) -> None:
    eventually(are_whole(cluster, topic), "all replicas in sync")
    cluster.node(3).stop()
    try:
        eventually(lambda: listed(cluster) == {1: "unfenced", 2: "unfenced", 3: "fenced"}, "it is fenced")
        said = kafka_tool("cluster", "unregister", "--bootstrap-server", cluster.bootstrap, "--id", "3")
        assert "Broker 3 is no longer registered" in said
        eventually(lambda: listed(cluster) == {1: "unfenced", 2: "unfenced"}, "it is forgotten")
        with pytest.raises(AssertionError, match="BrokerIdNotRegistered"):
            kafka_tool("cluster", "unregister", "--bootstrap-server", cluster.bootstrap, "--id", "3")
    finally:
        cluster.start_all()
    eventually(are_whole(cluster, topic), "its replicas are in sync again")


def test_verifiable_clients_agree(cluster: Cluster, tool: Tool, topic: str) -> None:
    count = 2000
    limits = ("--max-messages", str(count), "--topic", topic)
    sent = [json.loads(line) for line in tool("verifiable-producer", *limits, "--acks", "-1").splitlines()]
    acknowledged = [line["value"] for line in sent if line["name"] == "producer_send_success"]
    assert len(acknowledged) == count
    assert [line for line in sent if line["name"] == "producer_send_error"] == []
    read = tool("verifiable-consumer", *limits, "--group-id", topic, "--reset-policy", "earliest", "--verbose")
    lines = [json.loads(line) for line in read.splitlines() if line.startswith("{")]
    values = [line["value"] for line in lines if line["name"] == "record_data"]
    assert sorted(values, key=int) == sorted(acknowledged, key=int)
    assert any(line["name"] == "offsets_committed" and line["success"] for line in lines)


def test_dump_log_and_metadata_shell_read_every_node_s_metadata(cluster: Cluster, topic: str) -> None:
    for node in cluster.nodes:
        directory = node.disks[0].data / "__cluster_metadata-0"
        (log, *_) = sorted(directory.glob("*.log"))
        eventually(lambda log=log: topic.encode() in log.read_bytes(), "the topic in its log")  # type: ignore[misc]
        dumped = kafka_tool("dump-log", "--cluster-metadata-decoder", "--files", str(log))
        assert "REGISTER_BROKER_RECORD" in dumped
        assert f'"name":"{topic}"' in dumped
        assert "isvalid: false" not in dumped
        snapshot = max(directory.glob("*.checkpoint"))
        dumped = kafka_tool("dump-log", "--cluster-metadata-decoder", "--files", str(snapshot))
        assert "SnapshotHeader" in dumped
        assert "SnapshotFooter" in dumped
        assert "isvalid: false" not in dumped


def test_metadata_shell_shows_a_snapshot(cluster: Cluster, topic: str, tmp_path: Path) -> None:
    directory = cluster.node(1).disks[0].data / "__cluster_metadata-0"

    def newest_snapshot() -> Path:
        return max(directory.glob("*.checkpoint"))

    # The one that formatting wrote says nothing that the shell waits for.
    eventually(lambda: int(newest_snapshot().name.split("-")[0]) > 0, "a snapshot")
    newest = newest_snapshot()
    # Where it lies the shell would ask for the directory's lock, which the broker holds.
    copy = tmp_path / newest.name
    copy.write_bytes(newest.read_bytes())
    metadata_shell(copy, "ls", "/image", shows=lambda said: "topics" in said)
    # It reads the log itself as well.
    log = tmp_path / "00000000000000000000.log"
    eventually(lambda: topic.encode() in (directory / log.name).read_bytes(), "the topic in the first node's log")
    log.write_bytes((directory / log.name).read_bytes())
    metadata_shell(log, "ls", "/image/topics/byName", shows=lambda said: topic in said.split())


def test_controllers_answer_for_themselves(cluster: Cluster) -> None:
    """The tools that may speak to controllers: --bootstrap-controller (KIP-919)."""
    host, port = cluster.network.controller_address(1)
    said = kafka_tool("metadata-quorum", "--bootstrap-controller", f"{host}:{port}", "describe", "--status")
    assert "LeaderId:" in said
    assert "metadata.version" in kafka_tool("features", "--bootstrap-controller", f"{host}:{port}", "describe")
