"""Which fault applies to a request."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kavka_pytest.fault_plan import Action, Decision, Place, Request, Rule, decide, place_of, usual_place

PRODUCE = Request("Produce", 9, "orders", frozenset({Place.TOP}), frozenset({Place.TOP}))
BOTH = frozenset(Place)
NAMES = ("Produce", "Fetch")
CLIENTS = ("a", "b")


def numbers_played(rule: Rule, count: int, request: Request = PRODUCE) -> list[int]:
    """For which of so many equal requests a rule plays, from 1."""
    decision, played = Decision(None, None), []
    for number in range(1, count + 1):
        decision = decide([rule], decision.counts, request)
        if decision.rule is rule:
            played.append(number)
    return played


@pytest.mark.parametrize(
    ("nth", "times", "played"),
    [(1, 1, [1]), (2, 1, [2]), (2, 2, [2, 3]), (1, None, [1, 2, 3, 4, 5]), (4, None, [4, 5]), (6, 1, [])],
)
def test_a_rule_plays_from_the_nth_request_on(nth: int, times: int | None, played: list[int]) -> None:
    assert numbers_played(Rule(Action.DROP, "Produce", nth=nth, times=times), 5) == played


@pytest.mark.parametrize(
    ("rule", "is_played"),
    [
        (Rule(Action.DELAY, "Produce", delay_ms=1), True),
        (Rule(Action.DELAY, "Fetch", delay_ms=1), False),
        (Rule(Action.DELAY, "Produce", "orders", delay_ms=1), True),
        (Rule(Action.DELAY, "Produce", "others", delay_ms=1), False),
        (Rule(Action.BLACK_HOLE), True),
        (Rule(Action.BLACK_HOLE, client_id="orders"), True),
        (Rule(Action.BLACK_HOLE, client_id="others"), False),
    ],
)
def test_a_rule_concerns_its_api_and_its_client(rule: Rule, is_played: bool) -> None:
    assert (decide([rule], {}, PRODUCE).rule is rule) == is_played


def test_the_first_of_two_plays_and_both_count() -> None:
    first, second = Rule(Action.DROP, "Produce"), Rule(Action.ANSWER, "Produce", error="NOT_LEADER_OR_FOLLOWER", nth=2)
    one = decide([first, second], {}, PRODUCE)
    assert (one.rule, one.counts) == (first, {0: 1, 1: 1})
    two = decide([first, second], one.counts, PRODUCE)
    assert (two.rule, two.place, two.counts) == (second, Place.TOP, {0: 2, 1: 2})


@pytest.mark.parametrize(
    ("where", "defined", "places", "found"),
    [
        (Place.PARTS, BOTH, BOTH, Place.PARTS),
        (Place.TOP, BOTH, BOTH, Place.TOP),
        (Place.PARTS, frozenset({Place.TOP}), frozenset({Place.TOP}), Place.TOP),  # the version has no other
        (Place.PARTS, BOTH, frozenset({Place.TOP}), None),  # the request names no part
        (Place.TOP, frozenset(), frozenset(), None),
    ],
)
def test_an_error_needs_its_place(
    where: Place, defined: frozenset[Place], places: frozenset[Place], found: Place | None
) -> None:
    rule, request = Rule(Action.ANSWER, "Fetch", error="X", where=where), Request("Fetch", 12, "", places, defined)
    assert place_of(rule, request) is found
    decision = decide([rule], {}, request)
    assert (decision.rule, decision.counts) == ((rule, {0: 1}) if found else (None, {}))


@pytest.mark.parametrize(
    ("rule", "is_played"),
    [
        (Rule(Action.DELAY, "Produce", delay_ms=1), False),
        (Rule(Action.DROP, "Produce"), False),
        (Rule(Action.DROP, "Produce", reaches_broker=False), True),
        (Rule(Action.BLACK_HOLE, "Produce"), True),
    ],
)
def test_a_request_without_an_answer_is_dropped_or_swallowed_alone(rule: Rule, is_played: bool) -> None:
    assert (decide([rule], {}, Request("Produce", 9, "", has_answer=False)).rule is rule) == is_played


@pytest.mark.parametrize(
    ("error", "place"),
    [
        ("NOT_LEADER_OR_FOLLOWER", Place.PARTS),
        ("UNKNOWN_TOPIC_OR_PARTITION", Place.PARTS),
        ("OFFSET_OUT_OF_RANGE", Place.PARTS),
        ("FENCED_LEADER_EPOCH", Place.PARTS),
        ("KAFKA_STORAGE_ERROR", Place.PARTS),
        ("NOT_COORDINATOR", Place.TOP),
        ("COORDINATOR_LOAD_IN_PROGRESS", Place.TOP),
        ("FETCH_SESSION_ID_NOT_FOUND", Place.TOP),
        ("REBALANCE_IN_PROGRESS", Place.TOP),
    ],
)
def test_errors_of_partitions_are_put_into_parts(error: str, place: Place) -> None:
    assert usual_place(error) is place


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (Rule(Action.ANSWER, "Produce", error="X", nth=2), "answer X for Produce, number 2"),
        (Rule(Action.DROP, "Fetch", "a", times=3), "drop after the work for Fetch of client a, numbers 1 to 3"),
        (Rule(Action.DROP, "Fetch", reaches_broker=False), "drop before the work for Fetch, number 1"),
        (Rule(Action.DELAY, "Fetch", delay_ms=250, times=None), "delay of 250 ms for Fetch, from number 1 on"),
        (Rule(Action.BLACK_HOLE, None, "a", times=None), "black hole for any request of client a, from number 1 on"),
    ],
)
def test_a_rule_says_what_it_is(rule: Rule, words: str) -> None:
    assert str(rule) == words


RULES = st.builds(
    Rule,
    st.sampled_from([Action.DROP, Action.DELAY, Action.BLACK_HOLE]),
    st.none() | st.sampled_from(NAMES),
    st.none() | st.sampled_from(CLIENTS),
    st.integers(1, 4),
    st.none() | st.integers(1, 3),
)
REQUESTS = st.lists(st.builds(Request, st.sampled_from(NAMES), st.just(9), st.sampled_from(CLIENTS)), max_size=12)


@given(st.lists(RULES, max_size=4), REQUESTS)
def test_a_plan_is_what_its_rules_are_one_by_one(rules: list[Rule], requests: list[Request]) -> None:
    counts: dict[int, int] = {}
    for position, request in enumerate(requests):
        decision = decide(rules, counts, request)
        due = []
        for rule in rules:
            before = [one for one in requests[: position + 1] if rule.api in (None, one.api)]
            number = len([one for one in before if rule.client_id in (None, one.client_id)])
            is_concerned = rule.api in (None, request.api) and rule.client_id in (None, request.client_id)
            if is_concerned and number in range(rule.nth, 100 if rule.times is None else rule.nth + rule.times):
                due.append(rule)
        assert decision.rule is (due[0] if due else None)
        counts = dict(decision.counts)
