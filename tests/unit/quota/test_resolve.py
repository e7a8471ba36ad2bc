"""The eight levels, one row each, and the names that have tripped others."""

import pytest

from kavka_broker.core.quota.entity import CLIENT_KEYS, DEFAULT, IP_KEYS, Entity, IpEntity, QuotaKey
from kavka_broker.core.quota.resolve import (
    LEVELS,
    Effective,
    Share,
    candidates,
    is_shadowed,
    resolve,
    resolve_ip,
    share_of,
)

ALL = {entity: float(level) for level, entity in enumerate(candidates("alice", "etl"), 1)}


def winner(limits: dict[Entity, float], user: str, client_id: str) -> tuple[int, float] | None:
    effective = resolve(limits, user, client_id)
    return (effective.level, effective.limit) if effective else None


@pytest.mark.parametrize("level", LEVELS)
def test_the_most_specific_entity_that_is_left_wins_and_shadows_the_rest(level: int) -> None:
    left = {entity: limit for entity, limit in ALL.items() if limit >= level}

    effective = resolve(left, "alice", "etl")

    assert effective is not None
    assert (effective.level, effective.limit) == (level, float(level))
    assert effective.entity == candidates("alice", "etl")[level - 1]
    assert effective.shadows == candidates("alice", "etl")[level:]


def test_the_order_is_that_of_kip_55() -> None:
    assert candidates("alice", "etl") == (
        Entity("alice", "etl"),
        Entity("alice", DEFAULT),
        Entity("alice", None),
        Entity(DEFAULT, "etl"),
        Entity(DEFAULT, DEFAULT),
        Entity(DEFAULT, None),
        Entity(None, "etl"),
        Entity(None, DEFAULT),
    )


def test_nothing_limits_a_client_without_a_matching_quota() -> None:
    assert resolve({}, "alice", "etl") is None
    assert resolve({Entity("bob"): 1.0, Entity("alice", "other"): 2.0}, "alice", "etl") is None


def test_a_generous_quota_of_the_user_lifts_a_strict_one_of_the_client_id() -> None:
    """The example of the article on bandwidth quotas: the winner is the most specific, not the smallest."""
    limits = {Entity(None, "client1"): 1024.0, Entity("user1"): 1048576.0}

    assert resolve(limits, "user1", "client1") == Effective(Entity("user1"), 3, 1048576.0, (Entity(None, "client1"),))
    assert resolve(limits, "user2", "client1") == Effective(Entity(None, "client1"), 7, 1024.0, ())


@pytest.mark.parametrize("name", ["default", "<default>", "DEFAULT", "", "None", "null"])
def test_a_name_that_looks_like_the_default_is_a_name(name: str) -> None:
    limits = {Entity(name): 1.0, Entity(DEFAULT): 2.0, Entity(None, name): 3.0, Entity(None, DEFAULT): 4.0}

    of_client_ids = {entity: limit for entity, limit in limits.items() if entity.user is None}

    assert winner(limits, name, "x") == (3, 1.0)
    assert winner(limits, "other", "x") == (6, 2.0)
    assert winner(of_client_ids, "other", name) == (7, 3.0)
    assert winner(of_client_ids, "other", "x") == (8, 4.0)


@pytest.mark.parametrize("user", ["CN=a,OU=b", "žofie", "カフカ", "a/b", "a b", "user\n"])
def test_any_name_is_taken_as_it_is(user: str) -> None:
    limits = {Entity(user, user): 1.0, Entity(DEFAULT, DEFAULT): 2.0}

    assert resolve(limits, user, user) == Effective(Entity(user, user), 1, 1.0, (Entity(DEFAULT, DEFAULT),))


@pytest.mark.parametrize(
    ("level", "share"),
    [
        (1, Share("alice", "etl")),
        (2, Share("alice", "etl")),
        (3, Share("alice", None)),
        (4, Share("alice", "etl")),
        (5, Share("alice", "etl")),
        (6, Share("alice", None)),
        (7, Share(None, "etl")),
        (8, Share(None, "etl")),
    ],
)
def test_clients_share_by_the_parts_that_the_winning_entity_names(level: int, share: Share) -> None:
    effective = resolve({entity: limit for entity, limit in ALL.items() if limit >= level}, "alice", "etl")

    assert effective is not None
    assert share_of(effective, "alice", "etl") == share


def test_a_user_without_client_id_does_not_share_with_an_empty_client_id() -> None:
    of_user = resolve({Entity("alice"): 1.0}, "alice", "")
    of_pair = resolve({Entity("alice", ""): 1.0}, "alice", "")

    assert of_user is not None
    assert of_pair is not None
    assert share_of(of_user, "alice", "") != share_of(of_pair, "alice", "")


def test_addresses_have_a_name_or_the_default() -> None:
    limits = {IpEntity("10.0.0.1"): 5.0, IpEntity(DEFAULT): 1.0}

    assert resolve_ip(limits, "10.0.0.1") == 5.0
    assert resolve_ip(limits, "10.0.0.2") == 1.0
    assert resolve_ip({}, "10.0.0.1") is None


def test_every_key_belongs_to_clients_or_to_addresses() -> None:
    assert set(QuotaKey) == CLIENT_KEYS | IP_KEYS
    assert not CLIENT_KEYS & IP_KEYS
    assert QuotaKey("producer_byte_rate") == "producer_byte_rate"


@pytest.mark.parametrize(
    ("entity", "words"),
    [
        (Entity("default", None), 'user "default"'),
        (Entity(DEFAULT, None), "default user"),
        (Entity("alice", DEFAULT), 'user "alice" with default client id'),
        (Entity(None, ""), 'client id ""'),
        (IpEntity("10.0.0.1"), 'address "10.0.0.1"'),
        (IpEntity(), "default address"),
    ],
)
def test_an_entity_in_words_never_confuses_a_name_with_the_default(entity: Entity | IpEntity, words: str) -> None:
    assert str(entity) == words


def test_a_quota_is_shadowed_where_another_wins_for_all_of_its_clients() -> None:
    everyone, client, user = Entity(DEFAULT), Entity(None, "etl"), Entity("alice")

    assert is_shadowed({everyone: 1.0, client: 1.0}, client), "each client has some user"
    assert not is_shadowed({user: 1.0, client: 1.0}, client), "other users have no quota"
    assert is_shadowed({user: 1.0, Entity("alice", DEFAULT): 1.0}, user), "each connection has some client id"
    assert not is_shadowed({user: 1.0, Entity("alice", "etl"): 1.0}, user)
    assert not is_shadowed({client: 1.0}, client)
