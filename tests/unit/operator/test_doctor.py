"""What the doctor says of a cluster: one ill at a time is found by its name, and a healthy cluster has none."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from kavka_broker.core.quota.entity import DEFAULT, Entity
from kavka_cli.commands.doctor import as_json, as_text, exit_code
from kavka_operator.doctor.evidence import (
    Broker,
    Examined,
    Finding,
    Group,
    LogDir,
    Partition,
    Severity,
)
from kavka_operator.doctor.rules import judge
from kavka_operator.domain.transactions import OpenTransaction

LOOPBACK = {"listeners": "PLAINTEXT://127.0.0.1:9092", "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT"}
CLOSED = {
    "listeners": "CLIENTS://:9092,CONTROLLER://:9093",
    "listener.security.protocol.map": "CLIENTS:SASL_SSL,CONTROLLER:PLAINTEXT",
    "controller.listener.names": "CONTROLLER",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "default.replication.factor": "3",
    "offsets.topic.replication.factor": "3",
}
SETTINGS = {
    "cleanup.policy": "delete",
    "min.insync.replicas": "2",
    "retention.ms": "604800000",
    "retention.bytes": "-1",
    "segment.ms": "86400000",
    "segment.bytes": "1073741824",
    "unclean.leader.election.enable": "false",
}


def partition(topic: str, index: int, *replicas: int, **other: object) -> Partition:
    values = {"leader": replicas[0], "replicas": replicas, "isr": replicas, "start": 0, "end": 100, **other}
    return Partition(topic, index, **values)  # type: ignore[arg-type]


ORDERS = "orders", 0
HEALTHY_TRANSACTION = OpenTransaction("t", 7, "Ongoing", 1, 5.0, 60.0, frozenset({ORDERS}), {ORDERS: 20_000})
BROKERS = tuple(Broker(number, f"rack-{number}", CLOSED, (LogDir("/data", None, 0.5),)) for number in (1, 2, 3))
HEALTHY = Examined(
    brokers=BROKERS,
    partitions=(
        *(partition("orders", index, *order) for index, order in enumerate([(1, 2, 3), (2, 3, 1), (3, 1, 2)])),
        *(partition("__consumer_offsets", index, *order) for index, order in enumerate([(1, 2, 3), (2, 3, 1)])),
    ),
    settings={"orders": SETTINGS, "__consumer_offsets": {**SETTINGS, "cleanup.policy": "compact"}},
    internal=frozenset({"__consumer_offsets"}),
    quotas={Entity("alice", None): {"producer_byte_rate": 5.0}, Entity(None, "etl"): {"producer_byte_rate": 5.0}},
    groups=(Group("readers", "Stable", 2, {("orders", 0): 90, ("orders", 1): 100, ("orders", 2): 100}),),
    transactions=(HEALTHY_TRANSACTION,),
)


def with_settings(**changes: str) -> Examined:
    own = {**SETTINGS, **{key.replace("_", "."): value for key, value in changes.items()}}
    return replace(HEALTHY, settings={**HEALTHY.settings, "orders": own})


def with_brokers(changes: Mapping[str, str], **fields: Any) -> Examined:
    brokers = [replace(broker, settings={**CLOSED, **changes}, **fields) for broker in BROKERS]
    return replace(HEALTHY, brokers=brokers)


def with_partition(found: Partition) -> Examined:
    return replace(HEALTHY, partitions=[*HEALTHY.partitions, found])


def with_group(group: Group) -> Examined:
    return replace(HEALTHY, groups=[*(HEALTHY.groups or ()), group])


def orders(index: int, *replicas: int, **other: object) -> Examined:
    return with_partition(partition("orders", index, *replicas, **other))


def hanging(seconds: float) -> OpenTransaction:
    """A producer that no coordinator knows, silent for so long."""
    return OpenTransaction(None, 9, None, None, seconds, None, frozenset({ORDERS}), {ORDERS: 3})


RACKS = [replace(broker, rack="a" if broker.id < 3 else "b") for broker in BROKERS]
NO_RIGHTS = {"authorizer.class.name": ""}
ILLS = {
    "offline": orders(3, 4, 5, 6, leader=None, isr=()),
    "under-min-isr": orders(3, 1, 2, 3, isr=(1,)),
    "at-min-isr": orders(3, 1, 2, 3, isr=(1, 2)),
    "under-replicated": replace(
        orders(3, 1, 2, 3, isr=(1, 2)), settings=with_settings(min_insync_replicas="0").settings
    ),
    "one-replica": orders(3, 1),
    "one-rack": replace(orders(3, 1, 2), brokers=RACKS),
    "not-preferred": orders(3, 1, 2, 3, leader=2),
    "unbalanced": replace(
        HEALTHY, partitions=[*HEALTHY.partitions, *(partition("orders", index, 1, 2, 3) for index in range(3, 15))]
    ),
    "min-isr-above": with_settings(min_insync_replicas="4"),
    "min-isr-all": with_settings(min_insync_replicas="3"),
    "min-isr-one": with_settings(min_insync_replicas="1"),
    "unclean": with_settings(unclean_leader_election_enable="true"),
    "kept-forever": with_settings(retention_ms="-1"),
    "kept-longer": with_settings(retention_ms="60000", segment_ms="604800000"),
    "internal-replicas": with_partition(partition("__consumer_offsets", 2, 3)),
    "default-replicas": with_brokers({"default.replication.factor": "1"}),
    "clear-listener": with_brokers({"listener.security.protocol.map": "CLIENTS:SASL_PLAINTEXT"}),
    "no-authorizer": with_brokers(NO_RIGHTS),
    "quota-shadowed": replace(
        HEALTHY,
        quotas={Entity(DEFAULT, None): {"producer_byte_rate": 5.0}, Entity(None, "etl"): {"producer_byte_rate": 5.0}},
    ),
    "quota-of-nobody": with_brokers(LOOPBACK | NO_RIGHTS),
    "never-used": with_partition(partition("idle", 0, 1, 2, 3, end=0)),
    "not-read": with_partition(partition("written", 0, 1, 2, 3)),
    "group-without-members": with_group(Group("night", "Empty", 0, {("orders", 0): 10})),
    "offset-out-of-range": with_group(Group("late", "Stable", 1, {("orders", 0): 500})),
    "transaction-overdue": replace(HEALTHY, transactions=[OpenTransaction("t", 7, "Ongoing", 1, 500.0, 60.0)]),
    "transaction-hangs": replace(HEALTHY, transactions=[hanging(901.0)]),
    "stable-offset-held": replace(HEALTHY, transactions=[replace(HEALTHY_TRANSACTION, open_seconds=30.0)]),
    "disk-full": with_brokers({}, log_dirs=(LogDir("/data", None, 0.97),)),
    "disk-offline": with_brokers({}, log_dirs=(LogDir("/data", "error 56"),)),
}
BESIDE = {"default-replicas": set(), "offline": set(), "one-replica": {"min-isr-above"}, "one-rack": {"min-isr-all"}}


def codes(seen: Examined) -> set[str]:
    return {finding.code for finding in judge(seen)}


def test_a_healthy_cluster_has_no_finding() -> None:
    assert judge(HEALTHY) == []


@pytest.mark.parametrize("code", ILLS)
def test_an_ill_is_found_and_nothing_else(code: str) -> None:
    assert codes(ILLS[code]) == {code} | BESIDE.get(code, set())


def test_a_producer_without_a_coordinator_hangs_once_no_timeout_can_be_that_long() -> None:
    assert codes(replace(HEALTHY, transactions=[hanging(899.0)])) == set()
    longer = with_brokers({"transaction.max.timeout.ms": "1000000"}, log_dirs=BROKERS[0].log_dirs)
    assert codes(replace(longer, transactions=[hanging(901.0)])) == set()
    away = with_partition(partition("__transaction_state", 0, 1, 2, 3, leader=None, isr=()))
    assert codes(replace(away, transactions=[hanging(901.0)])) == {"offline", "not-read"}


def test_a_share_group_lags_as_its_coordinator_says_and_is_never_out_of_range() -> None:
    idle = Group("shared", "Empty", 0, {ORDERS: 10}, {ORDERS: 0, ("orders", 1): None})
    assert codes(with_group(idle)) == set()
    (found,) = judge(with_group(replace(idle, lags={ORDERS: 7})))
    assert (found.code, found.evidence) == ("group-without-members", "shared (lag 7)")
    assert codes(with_group(replace(idle, committed={ORDERS: 500}))) == set()


def test_what_a_transaction_holds_back_is_in_the_evidence() -> None:
    (found,) = judge(ILLS["stable-offset-held"])
    assert found.evidence == "orders-0 (20,000 records, by t, open 30 s)"
    (found,) = judge(ILLS["transaction-hangs"])
    assert found.evidence == "orders-0 (producer 9, silent for 901 s)"


def test_what_is_not_told_is_neither_healthy_nor_ill() -> None:
    dumb = Examined(
        brokers=[Broker(1), Broker(2), Broker(3)],
        partitions=[partition("orders", 0, 1, 2, 3, start=None, end=None)],
        untold=("groups: could not describe the groups",),
    )
    assert judge(dumb) == []
    assert any(line.startswith("NOT TOLD  groups") for line in as_text([], dumb))


def test_one_broker_alone_is_not_asked_for_replicas() -> None:
    alone = Examined(
        brokers=[Broker(1, settings=LOOPBACK)],
        partitions=[partition("__consumer_offsets", 0, 1), partition("orders", 0, 1)],
        settings={"orders": {**SETTINGS, "min.insync.replicas": "1"}},
        internal=frozenset({"__consumer_offsets"}),
        groups=[Group("readers", "Stable", 1, {("orders", 0): 100})],
    )
    assert judge(alone) == []


def test_the_worst_comes_first_and_the_exit_code_tells_notes_from_the_rest() -> None:
    found = judge(replace(ILLS["disk-offline"], groups=[]))
    assert [finding.severity for finding in found] == sorted((finding.severity for finding in found), reverse=True)
    assert exit_code(found) == 1
    assert exit_code([Finding(Severity.NOTE, "never-used", "", "", "")]) == exit_code([]) == 0


def test_json_holds_what_the_text_says() -> None:
    (line,) = json.loads(as_json(judge(ILLS["offline"]), ILLS["offline"]))["findings"]
    assert line["severity"] == "critical"
    assert "brokers 4, 5, 6 are away" in line["evidence"]
