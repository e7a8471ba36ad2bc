"""The quota reconciler, and who is hidden by whom."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kavka_broker.core.quota.entity import DEFAULT, Entity, IpEntity
from kavka_operator.api.quota import AnyEntity, RelatedQuota, entity_of
from kavka_operator.api.validation_errors import InvalidError
from kavka_operator.domain.plan import AlterQuota
from kavka_operator.domain.quota_entities import entity_text, from_wire, limit_text, to_wire
from kavka_operator.quota.shadows import level_of, shadowed_by, shadows
from kavka_operator.reconcile.quotas import reconcile, retire, target_values, unmanaged
from tests.unit.operator.fakes import NOW, quota

ETL = Entity(client_id="etl")
MIB = 1024.0**2


def test_a_quota_that_is_missing_is_set() -> None:
    plan = reconcile(quota(), {}, 1, NOW)
    assert plan.actions == (AlterQuota(ETL, {"producer_byte_rate": MIB}),)
    assert plan.words[0].message == "set producer_byte_rate=1Mi for client-id=etl"


def test_a_converged_resource_needs_no_action() -> None:
    plan = reconcile(quota(), {"producer_byte_rate": MIB}, 1, NOW)
    assert (plan.actions, plan.words[0].status) == ((), "True")


def test_quota_keys_set_by_hand_stay() -> None:
    assert not reconcile(quota(), {"producer_byte_rate": MIB, "request_percentage": 50.0}, 1, NOW).actions


def test_keys_taken_out_of_the_resource_go() -> None:
    wanted = quota(status={"applied": {"producer_byte_rate": MIB, "consumer_byte_rate": 5.0}})
    seen = {"producer_byte_rate": MIB, "consumer_byte_rate": 5.0, "request_percentage": 50.0}
    assert reconcile(wanted, seen, 1, NOW).actions == (AlterQuota(ETL, {}, ("consumer_byte_rate",)),)


def test_a_drifted_limit_is_set_again() -> None:
    assert reconcile(quota(), {"producer_byte_rate": 7.0}, 1, NOW).actions == (
        AlterQuota(ETL, {"producer_byte_rate": MIB}),
    )


def test_a_limit_of_the_cluster_is_divided_except_for_controller_mutations() -> None:
    wanted = quota(limits={"producerByteRate": "3Mi", "controllerMutationRate": 6.0}, scope="Cluster")
    (action,) = reconcile(wanted, {}, 3, NOW).actions
    assert action == AlterQuota(ETL, {"producer_byte_rate": MIB, "controller_mutation_rate": 6.0})


@pytest.mark.parametrize("brokers", range(1, 8))
@pytest.mark.parametrize("amount", ["10Mi", 7, 2**53 + 1, "3.5Gi"])
def test_all_brokers_together_never_allow_more_than_the_cluster_may(amount: object, brokers: int) -> None:
    wanted = quota(limits={"producerByteRate": amount}, scope="Cluster")
    (share,) = target_values(wanted, brokers, NOW).values()
    (whole,) = wanted.spec.limits.kafka_values().values()
    assert share.is_integer(), "Kafka takes whole numbers only"
    assert whole - brokers < share * brokers <= whole
    words = reconcile(wanted, {"producer_byte_rate": share}, brokers, NOW).words[0]
    assert words.status == "True"
    assert (f"/ {brokers})" in words.message) == (brokers > 1), words.message


def test_a_limit_too_small_to_be_divided_is_refused_in_words() -> None:
    wanted = quota(limits={"producerByteRate": 2, "consumerByteRate": 9}, scope="Cluster")
    assert target_values(wanted, 3, NOW) == {"consumer_byte_rate": 3.0}
    words = reconcile(wanted, {"consumer_byte_rate": 3.0}, 3, NOW).words[0]
    assert (words.status, words.reason) == ("False", "TooSmallToDivide")
    assert words.message.startswith("producerByteRate 2 is less than 1 for each of 3 brokers; write at least 3")


@pytest.mark.parametrize("field", ["requestPercentage", "controllerMutationRate", "connectionCreationRate"])
def test_every_limit_that_is_set_is_in_force(field: str) -> None:
    entity = {"ip": {"name": "10.0.0.1"}} if field == "connectionCreationRate" else None
    wanted = quota(entity=entity, limits={field: 5.0})
    (action,) = reconcile(wanted, {}, 1, NOW).actions
    assert isinstance(action, AlterQuota)
    words = reconcile(wanted, action.set, 1, NOW).words[0]
    assert (words.status, words.message) == ("True", "in force on every broker")


@pytest.mark.parametrize(
    ("rate", "said"),
    [(1.5, "whole number"), (1500000000.5, "whole number"), (0, "from 1"), (-1, "from 1"), (2**31, "up to")],
)
def test_a_limit_on_connections_is_what_brokers_take(rate: float, said: str) -> None:
    with pytest.raises(InvalidError, match=f"connectionCreationRate: .*{said}"):
        quota(entity={"ip": {"name": "10.0.0.1"}}, limits={"connectionCreationRate": rate})


def test_observing_takes_back_the_limit_and_has_it_measured() -> None:
    watching = quota(mode="Observe", status={"applied": {"producer_byte_rate": MIB}})
    assert reconcile(watching, {"producer_byte_rate": MIB}, 1, NOW).actions == (
        AlterQuota(ETL, {"kavka_observed_producer_byte_rate": MIB}, ("producer_byte_rate",)),
    )
    there = {"kavka_observed_producer_byte_rate": MIB, "producer_byte_rate": 1.0}
    plan = reconcile(quota(mode="Observe"), there, 1, NOW)
    assert (plan.actions, plan.words[0].reason) == ((), "Observed")
    assert plan.words[0].message == "observed only; nothing is limited"


def test_each_kind_of_limit_is_observed() -> None:
    limits = {"consumerByteRate": MIB, "requestPercentage": 5.0, "controllerMutationRate": 2.0}
    keys = ("consumer_byte_rate", "request_percentage", "controller_mutation_rate")
    expected = dict(zip([f"kavka_observed_{key}" for key in keys], limits.values(), strict=True))
    assert target_values(quota(mode="Observe", limits=limits), 1, NOW) == expected
    of_address = quota(mode="Observe", entity={"ip": {"default": True}}, limits={"connectionCreationRate": 7})
    assert target_values(of_address, 1, NOW) == {"kavka_observed_connection_creation_rate": 7.0}


def test_what_is_too_small_to_divide_is_not_observed_either() -> None:
    tiny = quota(mode="Observe", scope="Cluster", limits={"producerByteRate": 2})
    words = reconcile(tiny, {}, 3, NOW).words[0]
    assert (words.status, words.reason) == ("False", "TooSmallToDivide")


def test_an_override_begins_and_ends_by_itself() -> None:
    override = {
        "from": "2026-11-21T12:00:00Z",
        "until": "2026-11-21T13:00:00Z",
        "limits": {"producerByteRate": "5Mi"},
        "reason": "backfill of October",
    }
    wanted = quota(limits={"producerByteRate": "1Mi", "consumerByteRate": "2Mi"}, overrides=[override])
    usual = {"producer_byte_rate": MIB, "consumer_byte_rate": 2 * MIB}
    begin_ms = (NOW - timedelta(minutes=NOW.minute, seconds=NOW.second)).timestamp() * 1000
    times = {"kavka_override_from_ms": begin_ms, "kavka_override_until_ms": begin_ms + 3_600_000}
    beside = {**usual, "kavka_override_producer_byte_rate": 5 * MIB, **times}
    for moment in (NOW - timedelta(days=1), NOW):
        assert target_values(wanted, 1, moment) == beside, "the brokers have it before it begins"
    during = reconcile(wanted, beside, 1, NOW)
    assert not during.actions
    (begun,) = reconcile(wanted, usual, 1, NOW).actions
    moments = "kavka_override_from_ms=2026-11-21T12:00:00Z, kavka_override_until_ms=2026-11-21T13:00:00Z"
    assert str(begun) == f"set kavka_override_producer_byte_rate=5Mi, {moments} for client-id=etl"
    assert during.words[0].message == "override until 2026-11-21T13:00:00Z: backfill of October"
    over = wanted.replaced({"status": wanted.status.replaced({"applied": beside})})
    assert reconcile(over, beside, 1, NOW + timedelta(hours=1)).actions == (
        AlterQuota(ETL, {}, tuple(sorted(beside.keys() - usual.keys()))),
    )


def test_a_moment_that_no_calendar_has_is_told_as_a_number() -> None:
    assert limit_text("kavka_override_until_ms", 253_402_300_799_000) == "9999-12-31T23:59:59Z"
    assert limit_text("kavka_override_until_ms", 2**53 - 1) == str(2**53 - 1)
    assert limit_text("kavka_override_from_ms", -5) == "-5"
    assert limit_text("producer_byte_rate", MIB) == "1Mi"


def test_of_overrides_the_one_in_force_is_with_the_brokers_otherwise_the_next() -> None:
    def override(begin: str, until: str, rate: int) -> dict[str, Any]:
        day = "2026-12-01T"
        limits = {"producerByteRate": rate}
        return {"from": f"{day}{begin}:00Z", "until": f"{day}{until}:00Z", "limits": limits, "reason": "r"}

    wanted = quota(
        overrides=[override("08:00", "10:00", 8), override("09:00", "11:00", 9), override("07:00", "07:30", 7)]
    )
    key = "kavka_override_producer_byte_rate"
    of_hour = {
        hour: target_values(wanted, 1, datetime(2026, 12, 1, hour, 10, tzinfo=UTC)).get(key) for hour in range(6, 12)
    }
    assert of_hour == {6: 7.0, 7: 7.0, 8: 8.0, 9: 9.0, 10: 9.0, 11: None}


def test_a_prefix_is_marked_beside_its_limits_and_taken_back_with_them() -> None:
    wanted = quota(entity={"clientId": {"prefix": "etl-"}})
    made = reconcile(wanted, {}, 1, NOW)
    assert made.actions == (AlterQuota(Entity(None, "etl-"), {"producer_byte_rate": 2.0**20, "kavka_prefix": 1.0}),)
    applied = {"producer_byte_rate": 2.0**20, "kavka_prefix": 1.0}
    assert reconcile(wanted, applied, 1, NOW).actions == ()
    gone = quota(entity={"clientId": {"prefix": "etl-"}}, status={"applied": applied})
    assert retire(gone, applied).actions == (
        AlterQuota(Entity(None, "etl-"), {}, ("kavka_prefix", "producer_byte_rate")),
    )


def test_keys_of_ours_hide_no_quota() -> None:
    limits: dict[AnyEntity, dict[str, float]] = {
        Entity(DEFAULT): {"producer_byte_rate": 1.0, "kavka_observed_consumer_byte_rate": 1.0},
        ETL: {"consumer_byte_rate": 1.0, "kavka_observed_consumer_byte_rate": 1.0},
    }
    assert not shadowed_by(ETL, limits)


def test_the_older_resource_wins_and_keeps_its_values_when_the_other_goes() -> None:
    plan = reconcile(quota("mine"), {}, 1, NOW, older=quota("theirs"))
    assert not plan.actions
    assert plan.words[0].message == 'ClientQuota "theirs" limits client-id=etl too and is older'
    gone = quota("mine", status={"applied": {"producer_byte_rate": MIB}})
    assert not retire(gone, {"producer_byte_rate": MIB}, {"producer_byte_rate": 5.0}).actions


def test_deleting_takes_back_only_what_was_set() -> None:
    gone = quota(status={"applied": {"producer_byte_rate": MIB}})
    assert retire(gone, {"producer_byte_rate": MIB, "request_percentage": 5.0}).actions == (
        AlterQuota(ETL, {}, ("producer_byte_rate",)),
    )
    assert not retire(quota(), {"producer_byte_rate": MIB}).actions


def test_quotas_without_a_resource_are_named() -> None:
    seen: dict[AnyEntity, dict[str, float]] = {ETL: {}, Entity(DEFAULT): {}, IpEntity(): {}}
    assert unmanaged(seen, [quota()]) == ("ip=<default>", "user=<default>")


ENTITIES: list[tuple[dict[str, Any], dict[str, str | None], str]] = [
    ({"user": {"name": "alice"}}, {"user": "alice"}, "user=alice"),
    ({"user": {"default": True}}, {"user": None}, "user=<default>"),
    ({"user": {"name": "<default>"}}, {"user": "<default>"}, 'user="<default>"'),
    ({"user": {"name": "default"}}, {"user": "default"}, "user=default"),
    ({"user": {"name": "CN=a,OU=b"}}, {"user": "CN=a,OU=b"}, 'user="CN=a,OU=b"'),
    (
        {"user": {"name": "žluť"}, "clientId": {"default": True}},
        {"user": "žluť", "client-id": None},
        "user=žluť client-id=<default>",
    ),
    ({"ip": {"name": "10.0.0.1"}}, {"ip": "10.0.0.1"}, "ip=10.0.0.1"),
    ({"ip": {"default": True}}, {"ip": None}, "ip=<default>"),
]


@pytest.mark.parametrize(("written", "wire", "text"), ENTITIES, ids=[text for _, _, text in ENTITIES])
def test_entities_between_resource_and_wire(written: dict[str, Any], wire: dict[str, str | None], text: str) -> None:
    limits = {"connectionCreationRate": 5.0} if "ip" in written else {"producerByteRate": 1}
    entity = entity_of(quota(entity=written, limits=limits).spec.entity)
    assert (to_wire(entity), entity_text(entity), from_wire(wire)) == (wire, text, entity)


def test_a_kind_of_entity_that_we_do_not_know_is_passed_over() -> None:
    assert from_wire({"planet": "mars"}) is None
    assert from_wire({"user": "a", "ip": "1.2.3.4"}) is None
    assert from_wire({}) is None


LEVELS = [
    Entity("alice", "etl"),
    Entity("alice", DEFAULT),
    Entity("alice"),
    Entity(DEFAULT, "etl"),
    Entity(DEFAULT, DEFAULT),
    Entity(DEFAULT),
    Entity(None, "etl"),
    Entity(None, DEFAULT),
]


def test_entities_have_the_levels_of_kip_55() -> None:
    assert [level_of(entity) for entity in LEVELS] == list(range(1, 9))
    assert level_of(IpEntity()) is None


def test_a_default_on_users_hides_a_client_id_for_all_and_a_name_for_some() -> None:
    rate = {"producer_byte_rate": 1.0}
    limits: dict[AnyEntity, dict[str, float]] = {
        ETL: rate,
        Entity(DEFAULT): rate,
        Entity("alice"): rate,
        Entity("bob", "other"): rate,
    }
    assert shadowed_by(ETL, limits) == (
        RelatedQuota(entity="user=alice", keys=("producer_byte_rate",), clients="Some"),
        RelatedQuota(entity="user=<default>", keys=("producer_byte_rate",), clients="All"),
    )
    assert [each.entity for each in shadows(Entity("alice"), limits)] == ["user=<default>", "client-id=etl"]


def test_other_keys_hide_nothing() -> None:
    limits: dict[AnyEntity, dict[str, float]] = {
        ETL: {"producer_byte_rate": 1.0},
        Entity(DEFAULT): {"consumer_byte_rate": 1.0},
    }
    assert shadowed_by(ETL, limits) == ()
