"""Limits that would hold nodes or the operator: refused by name, or told."""

import pytest

from kavka_broker.core.quota.entity import DEFAULT, Entity, IpEntity
from kavka_operator.api.quota import INTERNAL_USERS, AnyEntity, ClientQuota
from kavka_operator.api.validation_errors import InvalidError
from kavka_operator.domain.plan import Word
from kavka_operator.platform.security import NODE_SUBJECT, OPERATOR_SUBJECT, ORGANIZATION
from kavka_operator.quota.shadows import Limits
from kavka_operator.reconcile.operator_quota_warning import internal_words
from tests.unit.operator.fakes import quota

RATE = {"controller_mutation_rate": 1.0}


def limiting(entity: AnyEntity) -> ClientQuota:
    """A ClientQuota of this entity."""
    parts = {"ip": entity.ip} if isinstance(entity, IpEntity) else {"user": entity.user, "clientId": entity.client_id}
    asked = {
        part: {"default": True} if name is DEFAULT else {"name": name}
        for part, name in parts.items()
        if name is not None
    }
    return quota("few", asked, {"connectionCreationRate" if "ip" in asked else "controllerMutationRate": 1})


def words_of(entity: AnyEntity, limits: Limits, *, knows_users: bool = False) -> list[Word]:
    """The condition of a ClientQuota of this entity, where Kafka has these limits."""
    return internal_words(limiting(entity), limits, knows_users=knows_users)


@pytest.mark.parametrize(
    ("entity", "is_held"),
    [
        (Entity(DEFAULT, None), True),
        (Entity(None, DEFAULT), True),
        (Entity("ANONYMOUS", None), True),
        (Entity(DEFAULT, "kavka-operator"), True),
        (Entity("alice", None), False),
        (Entity(None, "etl"), False),
        (IpEntity(DEFAULT), False),
    ],
)
def test_whom_a_limit_holds(entity: Entity | IpEntity, is_held: bool) -> None:
    assert bool(words_of(entity, {entity: RATE})) is is_held


def test_a_limit_that_another_hides_from_the_operator_holds_it_not() -> None:
    everybody, own = Entity(DEFAULT, None), Entity("ANONYMOUS", "kavka-operator")
    (word,) = words_of(everybody, {everybody: RATE})
    assert (word.type, word.reason) == ("HoldsOperator", "SharedLimit")
    assert word.message.startswith(
        'spec.limits.controllerMutationRate of ClientQuota "few" holds the operator too; a ClientQuota with entity {'
    )
    assert words_of(everybody, {everybody: RATE, own: {"controller_mutation_rate": 1000.0}}) == []
    assert words_of(everybody, {everybody: RATE, own: {"producer_byte_rate": 1.0}}), "another kind hides nothing"


def test_byte_rates_are_nothing_to_the_operator() -> None:
    everybody = Entity(DEFAULT, None)
    assert words_of(everybody, {everybody: {"producer_byte_rate": 1.0, "consumer_byte_rate": 1.0}}) == []
    both: Limits = {everybody: {**RATE, "request_percentage": 1.0}}
    # Another has set the second in Kafka: no field of the resource has it.
    assert (
        "spec.limits.controllerMutationRate and requestPercentage of ClientQuota"
        in words_of(everybody, both)[0].message
    )


def test_where_clients_log_in_the_operator_has_a_name_of_its_own() -> None:
    anonymous = Entity("ANONYMOUS", None)
    assert words_of(anonymous, {anonymous: RATE}, knows_users=True) == []
    assert words_of(Entity(DEFAULT, None), {Entity(DEFAULT, None): RATE}, knows_users=True)


def test_they_are_the_users_of_the_certificates() -> None:
    assert [f"CN={name},O={ORGANIZATION}" for name in (NODE_SUBJECT, OPERATOR_SUBJECT)] == [*INTERNAL_USERS]


@pytest.mark.parametrize("user", INTERNAL_USERS)
def test_a_user_of_the_cluster_itself_is_refused(user: str) -> None:
    with pytest.raises(InvalidError, match="is a user of the cluster itself"):
        quota(entity={"user": {"name": user}})
