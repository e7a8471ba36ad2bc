"""Pairs of quotas against the broker's own resolver, which is the rule: who hides whom for which clients."""

from hypothesis import given
from hypothesis import strategies as st

from kavka_broker.core.quota.entity import DEFAULT, Entity, Part
from kavka_broker.core.quota.resolve import candidates, resolve
from kavka_operator.api.quota import AnyEntity
from kavka_operator.domain.quota_entities import entity_text, from_wire, to_wire
from kavka_operator.quota.shadows import Neighbours, level_of, shadowed_by, shadows

NAMES = ("alice", "bob", "default", "")
CLIENTS = [(user, client) for user in (*NAMES, "stranger") for client in (*NAMES, "stranger")]
parts: st.SearchStrategy[Part] = st.sampled_from([None, DEFAULT, *NAMES])
entities = st.builds(Entity, parts, parts).filter(lambda entity: entity != Entity())
pairs = st.tuples(entities, entities).filter(lambda pair: pair[0] != pair[1])
KEY = "producer_byte_rate"


@given(entities)
def test_the_wire_form_leads_back(entity: Entity) -> None:
    assert from_wire(to_wire(entity)) == entity


@given(pairs)
def test_no_two_entities_have_the_same_text(pair: tuple[Entity, Entity]) -> None:
    assert entity_text(pair[0]) != entity_text(pair[1])


@given(pairs)
def test_a_pair_against_the_resolver(pair: tuple[Entity, Entity]) -> None:
    one, other = pair
    limits: dict[AnyEntity, dict[str, float]] = {one: {KEY: 1.0}, other: {KEY: 2.0}}
    hidden = {each.entity: each.clients for each in shadowed_by(one, limits)}
    mine = [client for client in CLIENTS if one in candidates(*client)]
    lost = [client for client in mine if (won := resolve({one: 1.0, other: 2.0}, *client)) and won.entity == other]
    assert (entity_text(other) in hidden) == bool(lost)
    if lost:
        assert hidden == {entity_text(other): "All" if lost == mine else "Some"}
        assert [shadow.entity for shadow in shadows(other, limits)] == [entity_text(one)]


@given(entities, st.sampled_from(CLIENTS))
def test_the_level_is_the_place_among_the_candidates(entity: Entity, client: tuple[str, str]) -> None:
    order = candidates(*client)
    if entity in order:
        assert level_of(entity) == order.index(entity) + 1


@given(st.lists(entities, unique=True, max_size=12), entities)
def test_neighbours_finds_every_entity_that_meets_another(others: list[Entity], one: Entity) -> None:
    limits: dict[AnyEntity, dict[str, float]] = {each: {KEY: 1.0} for each in [*others, one]}
    expected = [other for other in others if other != one and shadowed_by(one, {one: {KEY: 1.0}, other: {KEY: 1.0}})]
    assert {each.entity for each in shadowed_by(one, limits)} == {entity_text(each) for each in expected}
    near = Neighbours(limits)
    assert (shadowed_by(one, near), shadows(one, near)) == (shadowed_by(one, limits), shadows(one, limits))
