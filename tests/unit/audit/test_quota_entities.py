"""Entities of quotas in the trail: each has a key of its own, whatever names clients have."""

import json
from itertools import combinations

import pytest

from kavka_broker.core.audit.quota_entities import CHARACTERS_MAX, entity_key, entity_words
from kavka_broker.core.quota.entity import DEFAULT, Entity, Prefix

ENTITIES = [
    Entity("alice"),
    Entity(None, "alice"),
    Entity("alice", "app"),
    Entity("alice,client-id=app"),
    Entity("alice", DEFAULT),
    Entity(DEFAULT),
    Entity("<default>"),
    Entity(None, ""),
    Entity(None, Prefix.of("etl-")),
    Entity(None, "etl-*"),
]


def test_no_entity_passes_for_another() -> None:
    keys = [entity_key(entity) for entity in ENTITIES]
    assert all(first != second for first, second in combinations(keys, 2))
    assert all(isinstance(json.loads(key), dict) for key in keys)


@pytest.mark.parametrize(
    ("entity", "words"),
    [
        (Entity("alice", "app"), "client-id=app,user=alice"),
        (Entity(None, DEFAULT), "client-id=<default>"),
        (Entity(None, Prefix.of("etl-")), "client-id-prefix=etl-"),
    ],
)
def test_words_are_those_of_changes(entity: Entity, words: str) -> None:
    assert entity_words(entity_key(entity)) == words


def test_an_entity_with_long_names_is_one_of_the_others() -> None:
    assert entity_key(Entity("a" * CHARACTERS_MAX)) == ""
