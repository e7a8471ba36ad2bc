"""The resolver against a model that knows nothing of levels: it scores every entity and takes the best."""

from hypothesis import given, settings
from hypothesis import strategies as st

from kavka_broker.core.quota.entity import DEFAULT, Default, Entity, Part
from kavka_broker.core.quota.resolve import candidates, is_shadowed, resolve

NAMES = st.sampled_from(["alice", "etl", "default", "<default>", "", "CN=a,OU=b", "カ"])
PARTS = st.one_of(NAMES, st.just(DEFAULT), st.none())
ENTITIES = st.builds(Entity, PARTS, PARTS).filter(lambda entity: entity != Entity())


def score(part: Part) -> int:
    match part:
        case None:
            return 0
        case Default():
            return 1
        case _:
            return 2


def matches(part: Part, name: str) -> bool:
    return part is None or part is DEFAULT or part == name


@settings(max_examples=300)
@given(st.dictionaries(ENTITIES, st.floats(0, 1e12)), NAMES, NAMES)
def test_resolve_is_the_best_score_of_those_that_match(limits: dict[Entity, float], user: str, client_id: str) -> None:
    matching = [e for e in limits if matches(e.user, user) and matches(e.client_id, client_id)]
    ranked = sorted(matching, key=lambda e: (score(e.user), score(e.client_id)), reverse=True)

    effective = resolve(limits, user, client_id)

    assert [effective.entity, *effective.shadows] == ranked if effective else not ranked
    if effective:
        assert effective.limit == limits[effective.entity]
        assert candidates(user, client_id)[effective.level - 1] == effective.entity


@given(NAMES, NAMES)
def test_the_eight_candidates_are_eight(user: str, client_id: str) -> None:
    assert len(set(candidates(user, client_id))) == 8


FEW = ["alice", "etl", "a stranger"]
PAIRS = [Entity(user, client_id) for user in ("alice", DEFAULT, None) for client_id in ("etl", DEFAULT, None)][:-1]


@given(st.sets(st.sampled_from(PAIRS)))
def test_a_shadowed_quota_is_one_that_wins_for_no_client(entities: set[Entity]) -> None:
    limits = dict.fromkeys(sorted(entities, key=str), 1.0)
    winners = {found.entity for user in FEW for client_id in FEW if (found := resolve(limits, user, client_id))}

    assert {entity for entity in limits if is_shadowed(limits, entity)} == set(limits) - winners
