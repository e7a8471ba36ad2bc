"""A request of every API, about a topic, a group and a transactional id that exist or not."""

from importlib import import_module
from typing import Any, Final

from kavka_broker.protocol.message import Message
from kavka_broker.protocol.messages.streams_group_heartbeat_request import Subtopology, Topology
from kavka_broker.protocol.records.record import build_batch

TOPIC, OTHER, GROUP = "secret", "nowhere", "g"
ANOTHER_ID: Final = b"\x41" * 16


def of(name: str, **fields: object) -> Message:
    """Return a request by its name, with fields; a struct in it is a dict."""
    module = import_module(f"kavka_broker.protocol.messages.{name}_request")
    wanted = name.replace("_", "") + "request"
    kind = next(value for key, value in vars(module).items() if key.lower() == wanted)
    return _filled(module, kind, fields)  # type: ignore[no-any-return]


def _filled(module: Any, kind: Any, fields: dict[str, Any]) -> Any:
    instance = kind()
    types = {row[1]: row[2] for row in kind.SCHEMA}
    for name, value in fields.items():
        is_filled = isinstance(value, list) and value and isinstance(value[0], dict)
        kind_of = getattr(module, types[name].removeprefix("[]"), None)
        setattr(instance, name, [_filled(module, kind_of, item) for item in value] if is_filled else value)
    return instance


def topics(partitions: str, **partition: object) -> list[dict[str, Any]]:
    return [{"name": name, partitions: [dict(partition)]} for name in (TOPIC, OTHER)]


def named(partitions: str) -> list[dict[str, Any]]:
    return [{"name": name, partitions: [0]} for name in (TOPIC, OTHER)]


def on_broker(topic_id: bytes) -> dict[str, tuple[Message, int]]:
    """Return the requests that a broker serves, each with its version, by a name of their own."""
    return {
        **of_clients(topic_id),
        **of_transactions(),
        **of_administrators(topic_id),
        **of_share_groups(topic_id),
        **of_share_states(topic_id),
        **of_streams_groups(),
    }


def of_clients(topic_id: bytes) -> dict[str, tuple[Message, int]]:
    """Return the requests of producers and consumers."""
    records = memoryview(build_batch([(None, b"v")]))
    by_id = [{"topic_id": topic_id}, {"topic_id": ANOTHER_ID}]
    batch = [{"index": 0, "records": records}]
    position = [{"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1000}]
    offset = [{"partition_index": 0, "committed_offset": 5, "committed_metadata": ""}]
    return {
        "produce": (of("produce", acks=1, timeout_ms=1000, topic_data=[
            {"name": TOPIC, "partition_data": batch}, {"name": OTHER, "partition_data": batch}]), 9),
        "produce by id": (of("produce", acks=1, timeout_ms=1000, topic_data=[
            {**topic, "partition_data": batch} for topic in by_id]), 13),
        "fetch": (of("fetch", max_bytes=1000, topics=[
            {"topic": TOPIC, "partitions": position}, {"topic": OTHER, "partitions": position}]), 12),
        "fetch by id": (of("fetch", max_bytes=1000, topics=[{**topic, "partitions": position} for topic in by_id]), 16),
        "fetch as a follower": (of("fetch", replica_id=1, max_bytes=1000, topics=[
            {"topic": TOPIC, "partitions": position}]), 12),
        "list offsets": (of("list_offsets", replica_id=-1, topics=topics("partitions", timestamp=-1)), 7),
        "metadata of all": (of("metadata", topics=None, include_topic_authorized_operations=True), 12),
        "metadata by name": (of("metadata", topics=[{"name": TOPIC}, {"name": OTHER}]), 12),
        "metadata with operations of topics": (of("metadata", allow_auto_topic_creation=False, topics=[
            {"name": TOPIC}, {"name": "nowhere2"}], include_topic_authorized_operations=True), 12),
        "metadata by id": (of("metadata", topics=[{"name": None, **topic} for topic in by_id]), 12),
        "metadata of old": (of("metadata", topics=[{"name": TOPIC}]), 0),
        "metadata with operations": (of("metadata", topics=[], include_cluster_authorized_operations=True), 9),
        "offset commit": (of("offset_commit", group_id=GROUP, topics=[{"name": TOPIC, "partitions": offset}]), 8),
        "offset fetch": (of("offset_fetch", group_id=GROUP, topics=[
            {"name": TOPIC, "partition_indexes": [0]}]), 7),
        "offset fetch of groups": (of("offset_fetch", groups=[
            {"group_id": GROUP, "topics": None}, {"group_id": "h", "topics": None}]), 8),
        "find group": (of("find_coordinator", key_type=0, key=GROUP), 3),
        "find groups": (of("find_coordinator", key_type=0, coordinator_keys=[GROUP, "h"]), 4),
        "find transaction": (of("find_coordinator", key_type=1, coordinator_keys=["tx"]), 4),
        "join group": (of("join_group", group_id=GROUP, session_timeout_ms=10_000, protocol_type="consumer", protocols=[
            {"name": "range", "metadata": b""}]), 7),
        "heartbeat": (of("heartbeat", group_id=GROUP, member_id="m"), 4),
        "leave group": (of("leave_group", group_id=GROUP, members=[{"member_id": "m"}]), 4),
        "sync group": (of("sync_group", group_id=GROUP, member_id="m"), 4),
        "describe groups": (of("describe_groups", groups=[GROUP, "h"], include_authorized_operations=True), 5),
        "list groups": (of("list_groups"), 4),
        "consumer group heartbeat": (of(
            "consumer_group_heartbeat", group_id="of consumers", member_id="m", rebalance_timeout_ms=10_000,
            subscribed_topic_names=[TOPIC], topic_partitions=[]), 1),
        "describe consumer groups": (of(
            "consumer_group_describe", group_ids=[GROUP, "h"], include_authorized_operations=True), 1),
    }  # fmt: skip


def of_transactions() -> dict[str, tuple[Message, int]]:
    """Return the requests about a transactional id that nobody has used."""
    producer = {"producer_id": 5, "producer_epoch": 0}
    offset = [{"partition_index": 0, "committed_offset": 5, "committed_metadata": ""}]
    return {
        "add partitions to a transaction": (of("add_partitions_to_txn", v3_and_below_transactional_id="tx",
            v3_and_below_producer_id=5, v3_and_below_producer_epoch=0, v3_and_below_topics=[
                {"name": TOPIC, "partitions": [0]}]), 3),
        "add partitions for a broker": (of("add_partitions_to_txn", transactions=[
            {"transactional_id": "tx", **producer, "topics": []}]), 5),
        "add offsets to a transaction": (of("add_offsets_to_txn", transactional_id="tx", group_id=GROUP,
            **producer), 3),
        "end a transaction": (of("end_txn", transactional_id="tx", committed=True, **producer), 4),
        "commit offsets in a transaction": (of("txn_offset_commit", transactional_id="tx", group_id=GROUP, **producer,
            topics=[{"name": TOPIC, "partitions": offset}]), 4),
        "describe transactions": (of("describe_transactions", transactional_ids=["tx"]), 0),
        "list transactions": (of("list_transactions"), 1),
    }  # fmt: skip


def of_share_groups(topic_id: bytes) -> dict[str, tuple[Message, int]]:
    """Return the requests of share groups, of their members and of those that look after them."""
    member: dict[str, Any] = {"group_id": GROUP, "member_id": "m" * 22}
    batch = [{"first_offset": 0, "last_offset": 0, "acknowledge_types": [1]}]
    by_id = [{"topic_id": topic_id}, {"topic_id": ANOTHER_ID}]
    offsets = [{"partition_index": 0, "start_offset": 1}]
    both = [{"topic_name": TOPIC}, {"topic_name": OTHER}]
    return {
        "share group heartbeat": (of(
            "share_group_heartbeat", group_id="of shares", member_id="m", subscribed_topic_names=[TOPIC]), 1),
        "describe share groups": (of(
            "share_group_describe", group_ids=[GROUP, "h"], include_authorized_operations=True), 1),
        # Of a topic id that does not exist Apache Kafka's authorizer asks for a name, and the request fails.
        "share fetch": (of("share_fetch", **member, max_records=1, batch_size=1, topics=[
            {"topic_id": topic_id, "partitions": [{"partition_index": 0}]}]), 1),
        "share acknowledge": (of("share_acknowledge", **member, share_session_epoch=1, topics=[
            {**topic, "partitions": [{"partition_index": 0, "acknowledgement_batches": batch}]}
            for topic in by_id]), 1),
        "describe share offsets": (of("describe_share_group_offsets", groups=[
            {"group_id": GROUP, "topics": [{**topic, "partitions": [0]} for topic in both]},
            {"group_id": "h", "topics": None}]), 1),
        "alter share offsets": (of("alter_share_group_offsets", group_id=GROUP, topics=[
            {**topic, "partitions": offsets} for topic in both]), 0),
        "delete share offsets": (of("delete_share_group_offsets", group_id=GROUP, topics=both), 0),
    }  # fmt: skip


def of_share_states(topic_id: bytes) -> dict[str, tuple[Message, int]]:
    """Return the requests that brokers have for share coordinators."""

    def states(kind: str, **partition: object) -> Message:
        topic = {"topic_id": topic_id, "partitions": [{"partition": 0, **partition}]}
        return of(f"{kind}_share_group_state", group_id=GROUP, topics=[topic])

    summary = {"topic_id": topic_id, "partitions": [{"partition": 0}]}
    return {
        "initialize share states": (states("initialize", start_offset=1), 0),
        "read share states": (states("read"), 0),
        "write share states": (states("write", start_offset=1), 0),
        "summarize share states": (of("read_share_group_state_summary", group_id=GROUP, topics=[summary]), 0),
        "delete share states": (states("delete"), 0),
    }


def of_streams_groups() -> dict[str, tuple[Message, int]]:
    """Return the requests of streams groups."""
    nothing: dict[str, Any] = {"active_tasks": [], "standby_tasks": [], "warmup_tasks": []}
    member = {"member_id": "m", "rebalance_timeout_ms": 9, "process_id": "p", "client_tags": [], **nothing}
    topology = Topology(0, [Subtopology("0", [TOPIC])])
    return {
        "streams group heartbeat": (of(
            "streams_group_heartbeat", group_id="of streams", topology=topology, **member), 0),
        "describe streams groups": (of(
            "streams_group_describe", group_ids=[GROUP, "h"], include_authorized_operations=True), 0),
    }  # fmt: skip


def of_administrators(topic_id: bytes) -> dict[str, tuple[Message, int]]:
    """Return the requests of those that look after a cluster."""
    by_id = [{"topic_id": topic_id}, {"topic_id": ANOTHER_ID}]
    configs: list[dict[str, Any]] = [{"resource_type": 2, "resource_name": TOPIC}]
    configs += [{"resource_type": 4, "resource_name": "1"}, {"resource_type": 32, "resource_name": GROUP}]
    configs += [{"resource_type": 16, "resource_name": "m"}]
    rule = {"resource_type": 2, "resource_name": "t", "principal": "User:a", "host": "*", "operation": 3}
    chosen = {"resource_type_filter": 1, "resource_name_filter": None, "pattern_type_filter": 1, "operation": 1}
    chosen |= {"principal_filter": None, "host_filter": None, "permission_type": 1}
    where = [{"topic": TOPIC, "partitions": [0]}]
    return {
        "create topics": (of("create_topics", timeout_ms=1000, topics=[
            {"name": "new", "num_partitions": 1, "replication_factor": 1}]), 5),
        "delete topics": (of("delete_topics", timeout_ms=1000, topic_names=[TOPIC, OTHER]), 5),
        "delete topics by id": (of("delete_topics", timeout_ms=1000, topics=[
            {"name": None, **topic} for topic in by_id]), 6),
        "delete records": (of("delete_records", timeout_ms=1000, topics=topics("partitions", offset=0)), 2),
        "init producer id": (of("init_producer_id", transactional_id=None), 4),
        "init producer id of a transaction": (of("init_producer_id", transactional_id="tx", transaction_timeout_ms=1000,
            producer_id=-1, producer_epoch=-1), 4),
        "offset for leader epoch": (of("offset_for_leader_epoch", replica_id=-1, topics=[
            {"topic": TOPIC, "partitions": [{"partition": 0, "leader_epoch": 0}]}]), 4),
        "write markers": (of("write_txn_markers", markers=[
            {"producer_id": 5, "topics": [{"name": TOPIC, "partition_indexes": [0]}]}]), 1),
        "describe acls": (of("describe_acls", **chosen), 3),
        "create acls": (of("create_acls", creations=[{**rule, "permission_type": 3}]), 3),
        "delete acls": (of("delete_acls", filters=[{**chosen, "principal_filter": "User:nobody"}]), 3),
        "describe configs": (of("describe_configs", resources=[
            {**resource, "configuration_keys": None} for resource in configs]), 4),
        "alter configs": (of("alter_configs", resources=configs), 2),
        "incremental alter configs": (of("incremental_alter_configs", resources=configs), 1),
        "alter log dirs": (of("alter_replica_log_dirs", dirs=[
            {"path": "/x", "topics": [{"name": TOPIC, "partitions": [0]}]}]), 2),
        "describe log dirs": (of("describe_log_dirs", topics=None), 4),
        "create partitions": (of("create_partitions", timeout_ms=1000, topics=[
            {"name": TOPIC, "count": 4, "assignments": None}, {"name": OTHER, "count": 4, "assignments": None}]), 3),
        "delete groups": (of("delete_groups", groups_names=[GROUP, "h"]), 2),
        "elect leaders": (of("elect_leaders", timeout_ms=1000, topic_partitions=where), 2),
        "elect leaders of old": (of("elect_leaders", timeout_ms=1000, topic_partitions=where), 0),
        "reassign": (of("alter_partition_reassignments", topics=[
            {"name": TOPIC, "partitions": [{"partition_index": 0, "replicas": [1]}]}]), 0),
        "list reassignments": (of("list_partition_reassignments", topics=None), 0),
        "offset delete": (of("offset_delete", group_id=GROUP, topics=topics("partitions")), 0),
        "describe quotas": (of("describe_client_quotas", components=[]), 1),
        "alter quotas": (of("alter_client_quotas", entries=[
            {"entity": [{"entity_type": "user", "entity_name": "a"}], "ops": [
                {"key": "producer_byte_rate", "value": 5.0}]}]), 1),
        "describe credentials": (of("describe_user_scram_credentials", users=[{"name": "u"}]), 0),
        "alter credentials": (of("alter_user_scram_credentials", deletions=[], upsertions=[
            {"name": "u", "mechanism": 1, "iterations": 4096, "salt": b"s", "salted_password": b"p"}]), 0),
        "create token": (of("create_delegation_token", owner_principal_type="User", owner_principal_name="a"), 3),
        "renew token": (of("renew_delegation_token", hmac=b"h"), 2),
        "expire token": (of("expire_delegation_token", hmac=b"h"), 2),
        "describe tokens": (of("describe_delegation_token", owners=None), 3),
        "describe quorum": (of("describe_quorum", topics=[
            {"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}]), 1),
        "update features": (of("update_features", timeout_ms=1000, feature_updates=[
            {"feature": "group.version", "max_version_level": 1, "upgrade_type": 1}]), 1),
        "describe cluster": (of("describe_cluster", include_cluster_authorized_operations=True), 1),
        "describe producers": (of("describe_producers", topics=named("partition_indexes")), 0),
        "unregister broker": (of("unregister_broker", broker_id=77), 0),
        "list config resources": (of("list_config_resources", resource_types=[2]), 1),
        "describe topic partitions": (of("describe_topic_partitions", topics=[
            {"name": TOPIC}, {"name": OTHER}], response_partition_limit=10), 0),
        "describe all topic partitions": (of("describe_topic_partitions", topics=[], response_partition_limit=10), 0),
        "add voter": (of("add_raft_voter", voter_id=9), 0),
        "remove voter": (of("remove_raft_voter", voter_id=9), 0),
    }  # fmt: skip


def on_controller() -> dict[str, tuple[Message, int]]:
    """Return the requests that a controller alone serves, and some that both serve."""
    return {
        "fetch": (of("fetch", replica_id=7, max_bytes=1000, topics=[]), 12),
        "vote": (of("vote"), 1),
        "begin epoch": (of("begin_quorum_epoch"), 0),
        "end epoch": (of("end_quorum_epoch"), 0),
        "alter partition": (of("alter_partition", broker_id=7), 3),
        "envelope": (of("envelope", request_data=b"", request_principal=b"", client_host_address=b"\x7f\0\0\1"), 0),
        "fetch snapshot": (of("fetch_snapshot"), 0),
        "register broker": (of("broker_registration", broker_id=7, cluster_id="x"), 4),
        "heartbeat of a broker": (of("broker_heartbeat", broker_id=7), 1),
        "unregister broker": (of("unregister_broker", broker_id=77), 0),
        "allocate ids": (of("allocate_producer_ids", broker_id=7), 0),
        "register controller": (of("controller_registration", controller_id=7), 0),
        "assign directories": (of("assign_replicas_to_dirs", broker_id=7), 0),
        "update voter": (of("update_raft_voter", voter_id=7), 0),
        "describe controllers": (of("describe_cluster", endpoint_type=2), 1),
        "describe quorum": (of("describe_quorum"), 1),
        "elect leaders": (of("elect_leaders", timeout_ms=1000, topic_partitions=None), 2),
        "create topics": (of("create_topics", timeout_ms=1000, topics=[
            {"name": "new", "num_partitions": 1, "replication_factor": 1}]), 5),
    }  # fmt: skip
