"""Long stories that take turns: with real processes, and of what seldom changes.

`make test` tells one of `GROUPS` groups of them, which the commit draws, and `make test-all` tells all. Stories are
shared out by what they weigh, in seconds of a processor, so that the groups weigh about the same. Most weights were
read off a run (`tests/support/processor_time.py`: each run says it of a file); of rolls, faults and Spark they are
estimates, which the next run that tells the story corrects.
"""

from collections.abc import Mapping
from typing import Final

import pytest

from tests.support.drawn import is_turn

GROUPS: Final = 8
CHAOS: Final = "tests/chaos/test_chaos.py::test_nothing_acknowledged_is_lost_when"
SECONDS: Final[Mapping[str, int]] = {
    # Brokers of `kavka up`, and installations.
    "tests/operator/local/test_budget.py": 22,
    "tests/operator/local/test_console.py": 13,
    "tests/operator/local/test_fixtures_of_pytest.py": 66,
    "tests/operator/local/test_installed.py": 39,
    "tests/operator/local/test_mishaps.py": 15,
    "tests/operator/local/test_three.py": 250,
    "tests/operator/local/test_tutorial.py": 36,
    "tests/operator/local/test_up.py::test_ctrl_c_at_any_moment_leaves_no_process": 12,
    "tests/operator/local/test_up.py::test_ctrl_c_leaves_no_process": 24,
    "tests/operator/local/test_volumes.py": 59,
    # A Kubernetes API server.
    "tests/kube/test_api_away.py": 25,
    "tests/kube/test_api_faults.py": 49,
    "tests/kube/test_asking.py": 20,
    "tests/kube/test_audit.py": 56,
    "tests/kube/test_drain.py": 60,
    "tests/kube/test_dying.py": 60,
    "tests/kube/test_ephemeral.py": 91,
    "tests/kube/test_gitops.py": 25,
    "tests/kube/test_helm.py": 58,
    "tests/kube/test_lease.py": 14,
    "tests/kube/test_plan.py": 40,
    "tests/kube/test_pods.py": 48,
    "tests/kube/test_resizing.py": 10,
    "tests/kube/test_rights.py": 149,
    "tests/kube/test_silence.py": 20,
    # Faults of real processes.
    f"{CHAOS}_directories_fail_files_are_damaged_and_packets_come_late": 82,
    f"{CHAOS}_processes_die_or_stop": 60,
    f"{CHAOS}_the_network_is_cut_or_a_disk_is_full": 82,
    "tests/conformance/cluster/test_failover.py": 20,
    "tests/conformance/cluster/test_roll.py": 21,
    "tests/conformance/crashes/test_failed_assertion.py": 16,
    "tests/conformance/groups/test_consumer_protocol.py": 33,
    "tests/conformance/groups/test_share_groups.py": 26,
    "tests/conformance/groups/test_streams_groups.py": 18,
    "tests/conformance/groups/test_protocol_roll.py": 46,
    # Beside Apache Kafka, whose answers seldom change.
    "tests/conformance/authorization/test_refusals.py": 74,
    "tests/conformance/clients/test_foreign_suites.py": 14,
    "tests/conformance/clients/test_newest_kafka.py": 30,
    "tests/conformance/clients/test_page_of_brokers_for_tests.py": 48,
    "tests/conformance/console/test_page.py": 35,
    "tests/conformance/groups/test_streams_groups_agree.py": 24,
    "tests/conformance/kafka_own/test_kafka_own.py::test_administration": 85,
    "tests/conformance/kafka_own/test_kafka_own.py::test_consumer_tools": 20,
    "tests/conformance/kafka_own/test_kafka_own.py::test_consumers": 60,
    "tests/conformance/kafka_own/test_kafka_own.py::test_consumers_in_groups": 90,
    "tests/conformance/kafka_own/test_kafka_own.py::test_groups": 67,
    "tests/conformance/kafka_own/test_kafka_own.py::test_metadata": 50,
    "tests/conformance/kafka_own/test_kafka_own.py::test_migration": 61,
    "tests/conformance/kafka_own/test_kafka_own.py::test_new_groups": 110,
    "tests/conformance/kafka_own/test_kafka_own.py::test_offsets": 110,
    "tests/conformance/kafka_own/test_kafka_own.py::test_plain_consumers": 90,
    "tests/conformance/kafka_own/test_kafka_own.py::test_producers": 40,
    "tests/conformance/kafka_own/test_kafka_own.py::test_rights": 17,
    "tests/conformance/kafka_own/test_kafka_own.py::test_tools": 55,
    "tests/conformance/kafka_own/test_kafka_own.py::test_transactions": 40,
    "tests/conformance/metadata/test_cordoned.py": 41,
    "tests/conformance/metadata/test_exchange.py": 28,
    "tests/conformance/metadata/test_same_answers.py": 36,
    "tests/conformance/observability/test_telemetry_agrees.py": 19,
    "tests/conformance/security/test_delegation_tokens_agree.py": 17,
    "tests/conformance/security/test_kafka_users.py": 37,
    "tests/conformance/storage/test_same_directory.py": 23,
    "tests/conformance/mirroring/test_mirror_maker.py": 80,
    "tests/conformance/transactions/test_answers_agree.py": 14,
    "tests/conformance/transactions/test_bad_input_agrees.py": 20,
    "tests/conformance/registry/test_real_registry.py": 25,
    "tests/conformance/transactions/test_connect.py": 20,
    "tests/conformance/transactions/test_lost_coordinator.py": 15,
    "tests/conformance/transactions/test_prepared_answers.py": 28,
    "tests/conformance/transactions/test_writers.py": 65,
    # A server of its own, and Spark.
    "tests/conformance/analytics/test_chains_by_spark.py": 90,
    "tests/conformance/analytics/test_delta_by_spark.py": 105,
    "tests/conformance/analytics/test_live_query.py": 60,
    "tests/conformance/analytics/test_spark_run.py": 115,
    "tests/conformance/analytics/test_spark_users.py": 95,
    "tests/conformance/doctor/test_open_transactions.py": 15,
    "tests/conformance/external/test_thousands.py": 38,
    "tests/conformance/external/test_users.py": 40,
    "tests/conformance/observability/test_completeness.py": 15,
    "tests/conformance/observability/test_rules.py": 31,
    "tests/conformance/security/test_audit_policy.py": 14,
    "tests/conformance/security/test_audit_policy_of_three.py": 19,
    "tests/conformance/security/test_delegation_tokens.py": 15,
    "tests/conformance/security/test_renewals.py": 16,
}
"""By file or by test: a test of all files that are not here, and of all that it has in others, is told in each run."""


def groups() -> list[list[str]]:
    """The stories, the longest first, each in the group that weighed least before it."""
    found: list[list[str]] = [[] for _ in range(GROUPS)]
    for story in sorted(SECONDS, key=lambda story: (-SECONDS[story], story)):
        min(found, key=weight).append(story)
    return found


def weight(group: list[str]) -> int:
    """What a group weighs."""
    return sum(SECONDS[story] for story in group)


def resting() -> frozenset[str]:
    """The stories that this commit leaves to others."""
    return frozenset(story for number, group in enumerate(groups()) if not is_turn(number, GROUPS) for story in group)


def stories_of(nodeid: str) -> set[str]:
    """By which names a test may stand in `SECONDS`: its file's, its own, and that of all of its cases."""
    file, _, name = nodeid.partition("::")
    return {file, nodeid, f"{file}::{name.partition('[')[0]}"}


def leave_to_others(items: list[pytest.Item]) -> None:
    """Mark the tests of resting stories `extended`."""
    left = resting()
    for item in items:
        if not left.isdisjoint(stories_of(item.nodeid)):
            item.add_marker(pytest.mark.extended)
