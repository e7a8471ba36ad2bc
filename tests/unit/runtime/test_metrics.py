"""What a scrape says, and that it says it correctly."""

import asyncio
from types import SimpleNamespace

from prometheus_client.parser import text_string_to_metric_families

from kavka_broker.core.client_names import label_of
from kavka_broker.core.quota.entity import DEFAULT, Entity
from kavka_broker.quotas.client_quotas import ClientQuotas
from kavka_broker.runtime.dashboard_names import ALIASES, DASHBOARD_FAMILIES, PARTITION_NAMES
from kavka_broker.runtime.metric_sources import Sources
from kavka_broker.runtime.metric_table import FAMILIES
from kavka_broker.runtime.metrics import render
from kavka_broker.runtime.partition_figures import PARTITION_SERIES_MAX, TOPIC_SERIES_MAX
from tests.support.sim_disk import DiskError
from tests.support.turns import Turns
from tests.unit.runtime.sources import StoppedClock, partition, sources
from tests.unit.storage.support import SMALL, fill
from tests.unit.storage.test_log_manager import ID, formatted, start

Series = dict[tuple[str, frozenset[tuple[str, str]]], float]


def scrape(of: Sources) -> Series:
    text = asyncio.run(render(of)).decode()
    found: Series = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            key = sample.name, frozenset(sample.labels.items())
            assert key not in found, f"{key} twice"
            found[key] = sample.value
    return found


def value(found: Series, name: str, **labels: str) -> float:
    return found[name, frozenset(labels.items())]


def throttled() -> ClientQuotas:
    quotas = ClientQuotas()
    quotas.update(
        {
            "producer_byte_rate": {Entity(DEFAULT, "etl"): 1000.0},
            "consumer_byte_rate": {Entity("bob"): 1e6},
            "controller_mutation_rate": {Entity("carol"): 2.0},
            "request_percentage": {Entity("dave"): 10.0},
        },
        observed={"producer_byte_rate": {Entity("alice"): 500.0}},
    )
    quotas.produce("alice", "etl", 10_000, 5000)
    quotas.produce("alice", "etl", 5000, 5000)
    quotas.held("produce", "alice", "etl", 5000).begin(0)
    quotas.held("produce", "alice", "etl", 5000).end(4000)
    quotas.fetch("bob", "report", 500, 5000)
    for sensor, loop_ns in (
        (quotas.requests.sensor_of("dave", "cron", 5000), 2 * 10**9),
        (quotas.requests.exempt, 10**9),
    ):
        sensor.used_total += loop_ns
        quotas.requests.charge(sensor, loop_ns, 5000)
    carols = quotas.mutations.begin("carol", "admin", StoppedClock(), strict=False)
    carols.record(20)
    quotas.mutations.finish(carols, 5000)
    return quotas


def test_usage_limit_and_throttle_of_a_client_stand_side_by_side() -> None:
    found = scrape(sources(quotas=throttled()))
    labels = {"user": "alice", "client_id": "etl", "quota_type": "produce"}

    assert value(found, "kavka_client_bytes_total", **labels) == 15_000
    assert value(found, "kavka_client_throttle_seconds_total", **labels) == 4.0
    assert value(found, "kavka_client_throttled_requests_total", **labels) == 1
    source = {"level": "4", "source": 'default user with client id "etl"'}
    assert value(found, "kavka_client_quota_limit_bytes_per_second", **labels, **source) == 1000.0


def test_each_configured_quota_has_its_limit_usage_and_held_time() -> None:
    quotas = throttled()
    quotas.held("produce", "alice", "etl", 4500).begin(4500)
    found = scrape(sources(quotas=quotas))

    labels = {"entity": 'default user with client id "etl"', "quota_type": "produce"}
    figures = ("limit", "usage", "shares", "throttled_seconds_total", "throttled_connections", "shadowed")
    assert [value(found, f"kavka_quota_{figure}", **labels) for figure in figures] == [1000, 1500, 1, 4.5, 1, 0]
    assert value(found, "kafka_server_produce_queue_size") == 1
    assert value(found, "kafka_server_fetch_queue_size") == 0
    assert value(found, "kavka_series_omitted", family="quota") == 0


def test_kafkas_own_names_are_there_too() -> None:
    found = scrape(sources(quotas=throttled()))

    assert value(found, "kafka_server_produce_byte_rate", user="alice", client_id="etl") == 1500.0
    assert value(found, "kafka_server_produce_throttle_time", user="alice", client_id="etl") == 5000.0
    assert value(found, "kafka_server_fetch_byte_rate", user="bob", client_id="") == 50.0
    dave = {"user": "dave", "client_id": ""}
    assert value(found, "kafka_server_request_request_time", **dave) == 20.0
    assert value(found, "kafka_server_request_throttle_time", **dave) == 1000.0
    assert value(found, "kavka_client_loop_seconds_total", **dave) == 2.0
    assert value(found, "kavka_client_quota_limit_loop_ratio", **dave, level="3", source='user "dave"') == 0.1
    assert value(found, "kafka_server_request_exempt_request_time") == 10.0
    assert value(found, "kavka_exempt_loop_seconds_total") == 1.0
    rates = [
        value(found, f"kafka_server_{kind}replication_byte_rate") for kind in ("leader", "follower", "alterlogdirs")
    ]
    assert rates == [100.0, 200.0, 300.0]
    carol = {"user": "carol", "client_id": ""}
    assert value(found, "kafka_server_controllermutation_mutation_rate", **carol) == 2.0
    assert value(found, "kafka_server_controllermutation_tokens", **carol) == 2.0
    assert value(found, "kavka_client_mutations_total", **carol) == 20
    level = {"level": "3", "source": 'user "carol"'}
    assert value(found, "kavka_client_quota_limit_mutations_per_second", **carol, **level) == 2.0


def test_the_histogram_of_delays_adds_up() -> None:
    found = scrape(sources(quotas=throttled()))

    name = "kavka_throttle_duration_seconds"
    assert value(found, f"{name}_bucket", quota_type="produce", le="1.0") == 0
    assert value(found, f"{name}_bucket", quota_type="produce", le="5.0") == 1
    assert value(found, f"{name}_bucket", quota_type="produce", le="+Inf") == 1
    assert value(found, f"{name}_sum", quota_type="produce") == 5.0
    assert value(found, f"{name}_count", quota_type="fetch") == 0


def test_partitions_topics_and_replicas_are_counted() -> None:
    hosted = [partition("a", 0), partition("a", 1, isr=[1], replicas=[1, 2]), partition("b", 0, [1, 2], [1, 2])]

    found = scrape(sources(hosted))

    assert value(found, "kafka_server_brokertopicmetrics_bytesin_total", topic="a") == 200
    assert value(found, "kafka_server_brokertopicmetrics_replicationbytesin_total", topic="a") == 60
    assert value(found, "kafka_server_replicamanager_leadercount") == 3
    assert value(found, "kafka_server_replicamanager_underreplicatedpartitions") == 1
    assert value(found, "kafka_server_replicamanager_underminisrpartitioncount") == 1
    assert value(found, "kafka_server_replicamanager_atminisrpartitioncount") == 2
    assert value(found, "kafka_log_log_logendoffset", topic="b", partition="0") == 10


def test_what_is_set_aside_and_what_has_failed_is_counted() -> None:
    disk = formatted("/a", "/b")
    logs = start(disk, "/a", "/b")
    for index in range(3):
        fill(logs.create("t", index, ID, SMALL), 5)
    size_bytes = sum(one.size_bytes for one in logs if one.directory.startswith("/a/"))
    logs.delete("t", 0)
    logs.set_aside("t", 2)
    disk.errors.append(DiskError(frozenset({"rename"}), "/b/"))
    logs.delete("t", 1)

    found = scrape(sources(logs=logs))

    assert value(found, "kafka_log_logmanager_offlinelogdirectorycount") == 1
    assert value(found, "kavka_set_aside_logs", directory="/a", kind="delete") == 1
    assert value(found, "kavka_set_aside_logs", directory="/a", kind="stray") == 1
    kinds = [value(found, "kavka_set_aside_bytes", directory="/a", kind=kind) for kind in ("delete", "stray")]
    assert (sum(kinds), min(kinds) > 0) == (size_bytes, True)


def test_the_farthest_replica_of_each_broker_is_shown() -> None:
    hosted = [partition("a", 0, [1, 2], [1, 2, 3]), partition("a", 1, [1, 2, 3], [1, 2, 3])]

    found = scrape(sources(hosted))

    assert value(found, "kavka_replica_lag_records_max", follower="2") == 0
    assert value(found, "kavka_replica_lag_records_max", follower="3") == 7, "what is left of the log"
    assert value(found, "kafka_controller_kafkacontroller_offlinepartitionscount") == 1


def test_connections_are_counted_by_listener() -> None:
    found = scrape(sources())

    assert value(found, "kavka_connections", listener="PLAINTEXT") == 2
    assert value(found, "kavka_connections_throttled", listener="PLAINTEXT") == 1
    assert value(found, "kavka_connections_refused_total", listener="PLAINTEXT") == 1
    name = "kafka_server_socket_server_metrics"
    assert value(found, f"{name}_connection_accept_rate", listener="PLAINTEXT", ip="") == 0.5
    assert value(found, f"{name}_connection_accept_rate", listener="", ip="192.0.2.7") == 0.5
    assert value(found, f"{name}_broker_connection_accept_rate") == 0.5
    assert value(found, f"{name}_successful_authentication_total", listener="PLAINTEXT") == 8
    assert value(found, f"{name}_successful_authentication_no_reauth_total", listener="PLAINTEXT") == 7
    assert value(found, f"{name}_failed_authentication_total", listener="PLAINTEXT") == 3
    assert value(found, f"{name}_successful_reauthentication_total", listener="PLAINTEXT") == 6
    assert value(found, f"{name}_failed_reauthentication_total", listener="PLAINTEXT") == 2
    assert value(found, "kavka_sessions_ended_total", listener="PLAINTEXT") == 5
    assert value(found, "kavka_token_keys_age_seconds", listener="PLAINTEXT") == 7.5
    assert value(found, "kavka_token_keys_refresh_seconds", listener="PLAINTEXT") == 3600
    assert value(found, "kavka_address_connection_rate", ip="192.0.2.7") == 0.5
    quota = {"entity": 'address "192.0.2.7"', "quota_type": "connection_creation"}
    assert value(found, "kavka_quota_limit", **quota) == 10
    assert value(found, "kavka_quota_usage", **quota) == 0.5
    assert value(found, "kavka_quota_throttled_seconds_total", **quota) == 0


def test_names_that_clients_choose_cannot_break_the_page() -> None:
    quotas = ClientQuotas()
    for client_id in ('say "hi"', "back\\slash", "new\nline", "žofie カ", ""):
        quotas.produce("CN=a,OU=b", client_id, 1, 5000)

    found = scrape(sources(quotas=quotas))

    for client_id in ('say "hi"', "back\\slash", "new\nline", "žofie カ", ""):
        labels = {"user": "CN=a,OU=b", "client_id": client_id, "quota_type": "produce"}
        assert value(found, "kavka_client_bytes_total", **labels) == 1


def test_series_are_bounded_and_what_is_left_out_is_said() -> None:
    found = scrape(sources([partition(f"t{number}", 0) for number in range(PARTITION_SERIES_MAX + 5)]))

    assert value(found, "kavka_series_omitted", family="partition") == 5
    assert value(found, "kavka_series_omitted", family="topic") == PARTITION_SERIES_MAX + 5 - TOPIC_SERIES_MAX
    assert len([name for name, _ in found if name == "kafka_log_log_size"]) == PARTITION_SERIES_MAX


def test_the_process_is_measured() -> None:
    found = scrape(sources())

    assert value(found, "process_resident_memory_bytes") > 1_000_000
    assert value(found, "process_cpu_seconds_total") > 0
    assert 1_000_000 < value(found, "kavka_memory_anonymous_bytes") <= value(found, "process_resident_memory_bytes") * 2


def test_every_family_of_the_table_can_be_seen() -> None:
    """The table promises nothing that no code gives."""
    logs = start(formatted())
    hosted = [partition("a", 0, [1, 2], [1, 2])]
    of = sources(hosted, quotas=throttled(), logs=logs, dashboards=("confluent", "strimzi"))
    text = asyncio.run(render(of)).decode()

    assert {family.name for family in (*FAMILIES, *DASHBOARD_FAMILIES)} == {
        line.split()[2] for line in text.splitlines() if line.startswith("# TYPE k")
    }


def test_streams_groups_are_counted_by_their_states() -> None:
    found = scrape(sources())
    prefix = "kafka_server_group_coordinator_metrics_streams_group"
    assert value(found, f"{prefix}_count", state="Empty") == 2
    assert value(found, f"{prefix}_count", state="NotReady") == 0
    assert value(found, f"{prefix}_rebalance_count") == 3


def test_records_of_share_groups_are_counted_by_what_became_of_them() -> None:
    found = scrape(sources())

    events = {"acquired": 15, "redelivered": 5, "accepted": 7, "released": 2, "archived": 1, "expired": 2}
    assert {event: value(found, "kavka_share_records_total", event=event) for event in events} == events
    assert value(found, "kavka_share_sessions") == 3
    assert value(found, "kavka_share_partitions") == 1
    assert value(found, "kavka_share_records_in_flight") == 15
    assert value(found, "kavka_share_states") == 4
    pair = {"group": "workers", "topic": "work"}
    assert value(found, "kavka_share_group_waiting_records", **pair) == 40
    assert value(found, "kavka_share_group_oldest_record_seconds", **pair) == 7.5
    assert value(found, "kavka_share_group_records_total", **pair, event="redelivered") == 5
    assert value(found, "kavka_share_group_records_total", **pair, event="archived") == 1


def test_transactions_are_counted_by_state_and_the_oldest_has_an_age() -> None:
    found = scrape(sources())

    assert value(found, "kavka_transactional_ids", state="Ongoing") == 2
    assert value(found, "kavka_transactional_ids", state="CompleteCommit") == 5
    assert value(found, "kavka_transactional_ids", state="Empty") == 0
    assert value(found, "kavka_transaction_oldest_seconds") == 1.5
    assert value(found, "kavka_transactions_aborted_total", reason="timeout") == 1
    markers = "kafka_coordinator_transaction_transactionmarkerchannelmanager"
    assert value(found, f"{markers}_unknowndestinationqueuesize") == 3
    assert value(found, f"{markers}_logappendretryqueuesize") == 2


def test_what_clients_have_pushed_is_shown() -> None:
    found = scrape(sources())
    client = {"client_id": "app", "client_software": "java/4.3"}

    assert value(found, "kavka_client_telemetry_level", metric="org.apache.kafka.lag", **client) == 3
    assert value(found, "kavka_client_telemetry_flow_total", metric="org.apache.kafka.sent", **client) == 8
    assert value(found, "kavka_telemetry_pushes_total", result="NONE") == 1
    assert value(found, "kavka_telemetry_forwarded_total", result="dropped") == 0


def test_the_audit_trail_tells_what_it_has_written_and_dropped() -> None:
    found = scrape(sources())

    assert value(found, "kavka_audit_events_total", result="written") == 9
    assert value(found, "kavka_audit_events_total", result="dropped") == 2
    assert value(found, "kavka_audit_events_waiting") == 4
    assert value(found, "kavka_audit_told_total", kind="denied") == 6
    assert value(found, "kavka_audit_refusal_events_total", principal=label_of("User:" + "é" * 100)) == 3
    assert value(found, "kavka_audit_buffer_usage_ratio") == 0.5
    assert value(found, "kavka_audit_last_written_timestamp_seconds") == 1.5
    assert value(found, "kavka_audit_write_failures_total") == 3
    assert value(found, "kavka_audit_refusing") == 1
    assert value(found, "kavka_audit_refused_total", kind="produce") == 5


def test_clients_that_waited_have_labels_of_bounded_length() -> None:
    found = scrape(sources())

    assert value(found, "kavka_client_waited_seconds_total", user="alice", client_id="etl") == 0
    assert value(found, "kavka_client_waited_seconds_total", user="alice", client_id=label_of("é" * 256)) == 0


def test_the_log_cleaner_tells_what_it_has_done() -> None:
    found = scrape(sources())

    assert value(found, "kavka_cleaner_runs_total") == 1
    assert value(found, "kavka_cleaner_read_bytes_total") == 300
    assert value(found, "kafka_log_logcleaner_cleaner_recopy_percent") == 25
    assert value(found, "kafka_log_logcleanermanager_max_dirty_percent") == 0
    assert value(found, "kavka_cleaner_progress_ratio") == 0


def most_calls(of: Sources) -> int:
    """In one turn of the loop, while the page is made."""

    async def making() -> int:
        turns = Turns()
        with turns.counting():
            await asyncio.create_task(render(of))
        return turns.most

    return asyncio.run(making())


def test_no_turn_grows_with_the_partitions_nor_with_the_clients() -> None:
    def many(count: int) -> Sources:
        topic = SimpleNamespace(partitions={at: SimpleNamespace(leader=1, replicas=(1,)) for at in range(count)})
        quotas = ClientQuotas()
        for number in range(count // 2):
            quotas.produce("", f"client-{number}", 1, 0)
        return sources(
            [partition(f"t{at}", 0, [1], [1, 2]) for at in range(count)],
            metadata=SimpleNamespace(topics=[topic, topic], brokers=[]),
            quotas=quotas,
        )

    most_calls(many(10))  # its modules are imported
    few, more = most_calls(many(4_000)), most_calls(many(12_000))
    assert more < 1.2 * few


def test_names_of_other_dashboards_are_served_to_those_who_ask() -> None:
    hosted = [partition("a", 0), partition("a", 1, isr=[1, 2], replicas=[1, 2])]
    plain, found = scrape(sources(hosted)), scrape(sources(hosted, dashboards=("confluent",)))
    names = {name for name, _ in found} - {name for name, _ in plain}

    assert names == {*PARTITION_NAMES, *(alias.name for alias in ALIASES if alias.dashboard == "confluent")}
    assert value(found, "kafka_server_brokertopicmetrics_bytesinpersec", topic="a") == 200
    assert value(found, "kafka_network_requestmetrics_requestspersec", request="Produce") == 3
    assert value(found, "kafka_server_kafkaserver_brokerstate") == 1, "starting"
    assert value(found, "kafka_cluster_partition_underminisr", topic="a", partition="0") == 0
    assert value(found, "kafka_cluster_partition_insyncreplicascount", topic="a", partition="1") == 2


def test_each_other_name_stands_for_a_metric_that_there_is() -> None:
    labels = {family.name: len(family.labels) for family in FAMILIES}

    assert {alias.source: len(alias.labels) for alias in ALIASES} == {
        alias.source: labels[alias.source] for alias in ALIASES
    }


def test_no_two_families_have_one_name() -> None:
    names = [family.name for family in (*FAMILIES, *DASHBOARD_FAMILIES)]
    assert sorted(set(names)) == sorted(names)


def test_the_time_of_requests_is_counted_in_buckets_by_api() -> None:
    found = scrape(sources())
    name, api = "kavka_request_duration_seconds", {"api": "Produce"}
    counts = [value(found, f"{name}_bucket", **api, le=bound) for bound in ("0.001", "0.0025", "0.005", "30.0", "+Inf")]
    assert counts == [2, 2, 3, 3, 3]
    assert (value(found, f"{name}_count", **api), value(found, f"{name}_sum", **api)) == (3, 0.5)


def test_the_lag_of_a_group_is_told_at_both_isolation_levels_with_its_age() -> None:
    found = scrape(sources())
    labels = {"group": "readers", "topic": "orders"}
    for level, records, seconds in (("read_uncommitted", 7, 2.0), ("read_committed", 5, 1.0)):
        assert value(found, "kavka_group_lag_records", **labels, isolation_level=level) == records
        assert value(found, "kavka_group_lag_seconds", **labels, isolation_level=level) == seconds
    assert value(found, "kavka_group_lag_age_seconds") == 4.0
    assert value(found, "kavka_series_omitted", family="group") == 3
