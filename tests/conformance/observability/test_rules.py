"""Each alert speaks up when it should, and not before: promtool plays invented figures to the rules."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.conformance.observability.watching import MONITORING, OF_ANALYTICS, OF_OPERATOR, RULES, alerts
from tests.support.programs import promtool

pytestmark = pytest.mark.promtool

#: For each alert: series that make it fire, with values a minute, the minute in which it does, and series that do not.
NODE: Final = 'cluster="c", instance="a"'
QUOTA: Final = f'{NODE}, entity="user \\"u\\"", quota_type="produce"'
CLIENT: Final = f'{NODE}, user="u", client_id="c"'
LAG: Final = f'{NODE}, group="g", topic="t", isolation_level="read_uncommitted"'
TOPIC: Final = 'cluster="c", topic="orders", tier="log", group=""'
ALL_RULES: Final = (*RULES, OF_OPERATOR, OF_ANALYTICS)
DISK: Final = f'{NODE}, directory="/d"'
GIB: Final = 1 << 30
Series = Mapping[str, str]
CASES: Final[Mapping[str, tuple[Series, int, Series]]] = {
    "KavkaQuotaNearLimit": (
        {f"kavka_quota_usage{{{QUOTA}}}": "950x20", f"kavka_quota_limit{{{QUOTA}}}": "1000x20"},
        11,
        {f"kavka_quota_usage{{{QUOTA}}}": "850x20", f"kavka_quota_limit{{{QUOTA}}}": "1000x20"},
    ),
    "KavkaQuotaThrottledForLong": (
        {f"kavka_quota_throttled_seconds_total{{{QUOTA}}}": "0+40x40"},
        20,
        {f"kavka_quota_throttled_seconds_total{{{QUOTA}}}": "0+20x40"},
    ),
    "KavkaQuotaShadowed": (
        {f"kavka_quota_shadowed{{{QUOTA}}}": "1x20"},
        16,
        {f"kavka_quota_shadowed{{{QUOTA}}}": "0x20"},
    ),
    "KavkaClientSeriesOverflow": (
        {f'kavka_client_label_overflow_total{{{NODE}, quota_type="produce"}}': "0+1x40"},
        30,
        {f'kavka_client_label_overflow_total{{{NODE}, quota_type="produce"}}': "7x40"},
    ),
    "KavkaTelemetryOmitted": (
        {f"kavka_telemetry_values_omitted_total{{{NODE}}}": "0+1x40"},
        30,
        {f"kavka_telemetry_values_omitted_total{{{NODE}}}": "7x40"},
    ),
    "KavkaTelemetryNotForwarded": (
        {f'kavka_telemetry_forwarded_total{{{NODE}, result="dropped"}}': "0+1x40"},
        30,
        {f'kavka_telemetry_forwarded_total{{{NODE}, result="sent"}}': "0+1x40"},
    ),
    "KavkaQuotaCallbackFails": (
        {f"kavka_quota_callback_failures_total{{{NODE}}}": "0+1x40"},
        20,
        {f"kavka_quota_callback_failures_total{{{NODE}}}": "3x40"},
    ),
    "KavkaSeriesOmitted": (
        {f'kavka_series_omitted{{{NODE}, family="topic"}}': "3x20"},
        16,
        {f'kavka_series_omitted{{{NODE}, family="topic"}}': "0x20"},
    ),
    "KavkaNodeDown": ({f'up{{{NODE}, job="kavka"}}': "1 0x5"}, 3, {f'up{{{NODE}, job="other"}}': "0x5"}),
    "KavkaNodeNotReady": ({f"kavka_broker_ready{{{NODE}}}": "0x9"}, 6, {f"kavka_broker_ready{{{NODE}}}": "1x9"}),
    "KavkaActiveControllers": (
        {
            f"kafka_controller_kafkacontroller_activecontrollercount{{{NODE}}}": "0x9",
            'kafka_controller_kafkacontroller_activecontrollercount{cluster="c", instance="b"}': "0x9",
        },
        2,
        {
            f"kafka_controller_kafkacontroller_activecontrollercount{{{NODE}}}": "0x9",
            'kafka_controller_kafkacontroller_activecontrollercount{cluster="c", instance="b"}': "1x9",
        },
    ),
    "KavkaOfflinePartitions": (
        {f"kafka_controller_kafkacontroller_offlinepartitionscount{{{NODE}}}": "2x9"},
        2,
        {f"kafka_controller_kafkacontroller_offlinepartitionscount{{{NODE}}}": "0x9"},
    ),
    "KavkaUnderMinIsrPartitions": (
        {f"kafka_server_replicamanager_underminisrpartitioncount{{{NODE}}}": "2x9"},
        2,
        {f"kafka_server_replicamanager_underminisrpartitioncount{{{NODE}}}": "0x9"},
    ),
    "KavkaUnderReplicatedPartitions": (
        {f"kafka_server_replicamanager_underreplicatedpartitions{{{NODE}}}": "2x19"},
        11,
        {f"kafka_server_replicamanager_underreplicatedpartitions{{{NODE}}}": "2x5 0x14"},
    ),
    "KavkaBrokersFenced": (
        {f"kafka_controller_kafkacontroller_fencedbrokercount{{{NODE}}}": "1x19"},
        11,
        {f"kafka_controller_kafkacontroller_fencedbrokercount{{{NODE}}}": "0x19"},
    ),
    "KavkaUncleanLeaderElection": (
        {f"kafka_controller_controllerstats_uncleanleaderelections_total{{{NODE}}}": "0x5 1x9"},
        8,
        {f"kafka_controller_controllerstats_uncleanleaderelections_total{{{NODE}}}": "1x14"},
    ),
    "KavkaQuorumWithoutLeader": (
        {f"kafka_server_raft_metrics_current_leader{{{NODE}}}": "-1x9"},
        2,
        {f"kafka_server_raft_metrics_current_leader{{{NODE}}}": "0x9"},
    ),
    "KavkaLogDirectoryOffline": (
        {f"kafka_log_logmanager_offlinelogdirectorycount{{{NODE}}}": "1x9"},
        1,
        {f"kafka_log_logmanager_offlinelogdirectorycount{{{NODE}}}": "0x9"},
    ),
    "KavkaDiskNearlyFull": (
        {f"kavka_log_directory_free_bytes{{{DISK}}}": "10x19", f"kavka_log_directory_size_bytes{{{DISK}}}": "100x19"},
        11,
        {f"kavka_log_directory_free_bytes{{{DISK}}}": "20x19", f"kavka_log_directory_size_bytes{{{DISK}}}": "100x19"},
    ),
    "KavkaDiskFillsUp": (
        {
            f"kavka_log_directory_free_bytes{{{DISK}}}": f"{400 * GIB}-{GIB // 2}x500",
            f"kavka_log_directory_size_bytes{{{DISK}}}": f"{1000 * GIB}x500",
        },
        450,
        {
            f"kavka_log_directory_free_bytes{{{DISK}}}": f"{900 * GIB}-{GIB // 2}x500",
            f"kavka_log_directory_size_bytes{{{DISK}}}": f"{1000 * GIB}x500",
        },
    ),
    "KavkaLoopBusy": (
        {f"kavka_loop_cpu_seconds_total{{{NODE}}}": "0+57x30"},
        20,
        {f"kavka_loop_cpu_seconds_total{{{NODE}}}": "0+48x30"},
    ),
    "KavkaLoopHeld": (
        {f'kavka_loop_held_seconds_total{{{NODE}, callback="x"}}': "0+6x30"},
        20,
        {f'kavka_loop_held_seconds_total{{{NODE}, callback="x"}}': "0+1x30"},
    ),
    "KavkaGroupLagGrows": (
        {f"kavka_group_lag_seconds{{{LAG}}}": "290+60x60", f"kavka_group_lag_records{{{LAG}}}": "100+10x60"},
        45,
        {f"kavka_group_lag_seconds{{{LAG}}}": "4000x60", f"kavka_group_lag_records{{{LAG}}}": "5000-50x60"},
    ),
    "KavkaRequestsSlow": (
        {
            f'kavka_request_duration_seconds_bucket{{{NODE}, api="Produce", le="1.0"}}': "0+50x30",
            f'kavka_request_duration_seconds_bucket{{{NODE}, api="Produce", le="5.0"}}': "0+100x30",
            f'kavka_request_duration_seconds_bucket{{{NODE}, api="Produce", le="+Inf"}}': "0+100x30",
        },
        20,
        {
            f'kavka_request_duration_seconds_bucket{{{NODE}, api="Fetch", le="1.0"}}': "0+50x30",
            f'kavka_request_duration_seconds_bucket{{{NODE}, api="Fetch", le="+Inf"}}': "0+100x30",
        },
    ),
    "KavkaClientHurtByNeighbour": (
        {
            f"kavka_client_waited_seconds_total{{{CLIENT}}}": "0+30x30",
            f"kavka_client_loop_seconds_total{{{CLIENT}}}": "0+1x30",
        },
        20,
        {
            f"kavka_client_waited_seconds_total{{{CLIENT}}}": "0+30x30",
            f"kavka_client_loop_seconds_total{{{CLIENT}}}": "0+30x30",
        },
    ),
    "KavkaAssertionFailed": (
        {f"kavka_assertions_failed_total{{{NODE}}}": "0x5 1x9"},
        8,
        {f"kavka_assertions_failed_total{{{NODE}}}": "1x14"},
    ),
    "KavkaUncleanablePartitions": (
        {f"kavka_cleaner_uncleanable_partitions{{{DISK}}}": "1x19"},
        11,
        {f"kavka_cleaner_uncleanable_partitions{{{DISK}}}": "0x19"},
    ),
    "KavkaAuthenticationFailures": (
        {f'kafka_server_socket_server_metrics_failed_authentication_total{{{NODE}, listener="CLIENTS"}}': "0+60x30"},
        20,
        {f'kafka_server_socket_server_metrics_failed_authentication_total{{{NODE}, listener="CLIENTS"}}': "0+20x30"},
    ),
    "KavkaTokenKeysOld": (
        {
            f'kavka_token_keys_age_seconds{{{NODE}, listener="CLIENTS"}}': "0+60x200",
            f'kavka_token_keys_refresh_seconds{{{NODE}, listener="CLIENTS"}}': "3600x200",
        },
        132,
        {
            f'kavka_token_keys_age_seconds{{{NODE}, listener="CLIENTS"}}': "0+60x120",
            f'kavka_token_keys_refresh_seconds{{{NODE}, listener="CLIENTS"}}': "3600x120",
        },
    ),
    "KavkaAuditDeniedSpike": (
        {f'kavka_audit_told_total{{{NODE}, kind="denied"}}': "0+6x60 360+600x30"},
        72,
        {f'kavka_audit_told_total{{{NODE}, kind="denied"}}': "0+600x90"},
    ),
    "KavkaAuditRefusalFlood": (
        {f'kavka_audit_refusal_events_total{{{NODE}, principal="User:nobody"}}': "0+6000x14"},
        12,
        {f'kavka_audit_refusal_events_total{{{NODE}, principal="User:nobody"}}': "0+1200x14"},
    ),
    "KavkaAuditDropping": (
        {f'kavka_audit_events_total{{{NODE}, result="dropped"}}': "0x5 1x9"},
        8,
        {f'kavka_audit_events_total{{{NODE}, result="written"}}': "0+10x14"},
    ),
    "KavkaAuditStalled": (
        {f"kavka_audit_last_written_timestamp_seconds{{{NODE}}}": "0x9"},
        5,
        {f"kavka_audit_last_written_timestamp_seconds{{{NODE}}}": "0+60x9"},
    ),
    "KavkaAuditRefusing": ({f"kavka_audit_refusing{{{NODE}}}": "1x9"}, 1, {f"kavka_audit_refusing{{{NODE}}}": "0x9"}),
    "KavkaAuditChainBroken": (
        {'kavka_audit_chains{cluster="c", state="unsigned"}': "1x9"},
        1,
        {'kavka_audit_chains{cluster="c", state="sound"}': "1x9", 'kavka_audit_foreign_records{cluster="c"}': "0x9"},
    ),
    "KavkaConnectionsRefused": (
        {f'kavka_connections_refused_total{{{NODE}, listener="PLAINTEXT"}}': "0+120x30"},
        20,
        {f'kavka_connections_refused_total{{{NODE}, listener="PLAINTEXT"}}': "0+30x30"},
    ),
}

#: The operator's, which speaks of resources of Kubernetes.
NAMED: Final = 'namespace="n", name="c"'
CASES_OF_OPERATOR: Final[Mapping[str, tuple[Series, int, Series]]] = {
    "KavkaOperatorInactive": ({"kavka_operator_active": "0x9"}, 6, {"kavka_operator_active": "1x9"}),
    "KavkaOperatorLookFails": (
        {f"kavka_operator_look_failures_total{{{NAMED}}}": "0+1x30"},
        25,
        {f"kavka_operator_look_failures_total{{{NAMED}}}": "9x30"},
    ),
    "KavkaOperatorNeverRests": (
        {'kavka_operator_writes_total{to="kafka", what="AlterTopic"}': "0+90x90"},
        70,
        {'kavka_operator_writes_total{to="kafka", what="AlterTopic"}': "0+30x90"},
    ),
    "KavkaResourceNotReady": (
        {f'kavka_operator_not_ready_timestamp_seconds{{{NAMED}, kind="Topic", reason="Offline"}}': "0x40"},
        31,
        {
            f'kavka_operator_not_ready_timestamp_seconds{{{NAMED}, kind="Topic", reason="Offline"}}': "1200x40",
            f'kavka_operator_not_ready_timestamp_seconds{{{NAMED}, kind="Topic", reason="ClusterUnavailable"}}': "0x40",
        },
    ),
    "KavkaRollBlocked": (
        {f"kavka_operator_roll_blocked_timestamp_seconds{{{NAMED}}}": "0x40"},
        31,
        {f"kavka_operator_roll_blocked_timestamp_seconds{{{NAMED}}}": "1200x40"},
    ),
    "KavkaClustersWaiting": (
        {"kavka_operator_clusters_waiting": "1x20"},
        16,
        {"kavka_operator_clusters_waiting": "0x20"},
    ),
}

CASES_OF_ANALYTICS: Final[Mapping[str, tuple[Series, int, Series]]] = {
    "KavkaCompletenessLow": (
        {f"kavka_analytics_completeness_ratio{{{TOPIC}}}": "0.9989x9"},
        6,
        {f"kavka_analytics_completeness_ratio{{{TOPIC}}}": "0.999x9"},
    ),
    "KavkaAnalyticsStale": (
        {'kavka_analytics_last_success_timestamp_seconds{cluster="c"}': "0x130"},
        121,
        {'kavka_analytics_last_success_timestamp_seconds{cluster="c"}': "0x119 7200x10"},
    ),
}
#: The same, with values an hour.
HOURLY: Final[Mapping[str, tuple[Series, int, Series]]] = {
    "KavkaAuditNotVerified": (
        {'kavka_audit_verified_timestamp_seconds{cluster="c"}': "0x60"},
        49,
        {'kavka_audit_verified_timestamp_seconds{cluster="c"}': "0+3600x60"},
    ),
    "KavkaQuotaUnused": (
        {f"kavka_quota_usage{{{QUOTA}}}": "10x200", f"kavka_quota_limit{{{QUOTA}}}": "1000x200"},
        171,
        {f"kavka_quota_usage{{{QUOTA}}}": "10x100 60 10x99", f"kavka_quota_limit{{{QUOTA}}}": "1000x200"},
    ),
}


def test_promtool_finds_nothing_wrong_with_the_rules() -> None:
    for path in ALL_RULES:
        assert "SUCCESS" in promtool("check", "rules", str(path))


def test_promtool_takes_the_configuration_with_its_rules() -> None:
    assert "SUCCESS: 5 rule files found" in promtool("check", "config", str(MONITORING / "prometheus.yml"))


def test_each_alert_is_played() -> None:
    assert {*CASES, *CASES_OF_OPERATOR, *CASES_OF_ANALYTICS, *HOURLY} == set(alerts(ALL_RULES))


@pytest.mark.parametrize(
    ("cases", "unit"), [(CASES, "m"), (CASES_OF_OPERATOR, "m"), (CASES_OF_ANALYTICS, "m"), (HOURLY, "h")]
)
def test_each_alert_fires_for_what_it_is_about_and_for_nothing_less(
    tmp_path: Path, cases: Mapping[str, tuple[Series, int, Series]], unit: str
) -> None:
    played = [play for alert, (bad, moment, good) in cases.items() for play in plays(alert, bad, good, moment, unit)]
    path, files = tmp_path / "played.yaml", [str(file) for file in ALL_RULES]
    path.write_text(yaml.safe_dump({"rule_files": files, "evaluation_interval": f"1{unit}", "tests": played}))

    assert "SUCCESS" in promtool("test", "rules", str(path))


def plays(alert: str, bad: Series, good: Series, moment: int, unit: str) -> list[dict[str, Any]]:
    """What makes it fire, at that moment and not while it is pending; and what does not."""
    early = [expected(alert, "0m", fires=False)] if "for" in alerts(ALL_RULES)[alert] else []
    when = f"{moment}{unit}"
    return [
        play(bad, unit, [expected(alert, when, fires=True), *early]),
        play(good, unit, [expected(alert, when, fires=False)]),
    ]


def play(series: Series, unit: str, expectations: list[dict[str, Any]]) -> dict[str, Any]:
    given = [{"series": name, "values": values} for name, values in series.items()]
    return {"interval": f"1{unit}", "input_series": given, "promql_expr_test": expectations}


def expected(alert: str, when: str, *, fires: bool) -> dict[str, Any]:
    samples = [{"labels": f'{{alertname="{alert}"}}', "value": 1}] if fires else []
    expression = f'count by (alertname) (ALERTS{{alertname="{alert}", alertstate="firing"}})'
    return {"expr": expression, "eval_time": when, "exp_samples": samples}
