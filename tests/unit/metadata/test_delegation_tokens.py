"""Delegation tokens: who may change them, how long they hold, what is refused, and what a sweep removes."""

import pytest

from kavka_broker.core.decision import Decision
from kavka_broker.core.metadata.decide.delegation_tokens import Lifetimes, NewToken, create, expire, renew, sweep
from kavka_broker.core.metadata.image.delegation_tokens import DelegationToken, DelegationTokens
from kavka_broker.protocol.errors import BrokerError, ErrorCode

E = ErrorCode
NOW_MS = 1_000_000
LIFETIMES = Lifetimes(max_ms=1000, renewal_ms=300)
ALICE, BOB, CAROL = "User:alice", "User:bob", "User:carol"


def wanted(
    token_id: str = "t", *, owner: str = ALICE, lifetime_ms: int = -1, renewers: tuple[str, ...] = ()
) -> NewToken:
    return NewToken(token_id, owner, BOB, renewers, lifetime_ms)


def enact(tokens: DelegationTokens, decision: Decision[object]) -> None:
    for record in decision.records:
        tokens.replay(record)  # type: ignore[arg-type]


def made(*tokens: NewToken, lifetimes: Lifetimes = LIFETIMES) -> DelegationTokens:
    there = DelegationTokens()
    for token in tokens:
        enact(there, create(there, token, lifetimes, NOW_MS))
    return there


def only(tokens: DelegationTokens) -> DelegationToken:
    (token,) = tokens.by_id.values()
    return token


def code_of(change: object) -> ErrorCode:
    with pytest.raises(BrokerError) as caught:
        change()  # type: ignore[operator]
    return caught.value.code


@pytest.mark.parametrize(
    ("lifetime_ms", "max_ms", "expires_ms"),
    [(-1, 1000, 300), (0, 1000, 300), (500, 500, 300), (200, 200, 200), (5000, 1000, 300)],
)
def test_a_token_holds_for_its_renewal_time_and_no_longer_than_its_life(
    lifetime_ms: int, max_ms: int, expires_ms: int
) -> None:
    token = only(made(wanted(lifetime_ms=lifetime_ms, renewers=(CAROL,))))
    assert token == DelegationToken("t", ALICE, BOB, (CAROL,), NOW_MS, NOW_MS + max_ms, NOW_MS + expires_ms)


def test_a_life_without_end_is_as_long_as_records_can_say() -> None:
    token = only(made(wanted(), lifetimes=Lifetimes(2**63 - 1, 2**63 - 1)))
    assert (token.max_ms, token.expires_ms) == (2**63 - 1, 2**63 - 1)


def test_it_holds_at_its_last_moment_and_not_behind_it() -> None:
    token = only(made(wanted()))
    assert (token.is_over(NOW_MS + 300), token.is_over(NOW_MS + 301)) == (False, True)
    ended = token._replace(max_ms=NOW_MS + 10)
    assert (ended.is_over(NOW_MS + 10), ended.is_over(NOW_MS + 11)) == (False, True)


@pytest.mark.parametrize(("period_ms", "expires_ms"), [(-1, 400), (0, 400), (100, 200), (10_000, 400)])
def test_a_renewal_moves_the_expiry_from_now_on(period_ms: int, expires_ms: int) -> None:
    tokens = made(wanted())
    decision = renew(tokens, "t", ALICE, period_ms, LIFETIMES, NOW_MS + 100)
    enact(tokens, decision)
    assert decision.response == only(tokens).expires_ms == NOW_MS + expires_ms


def test_no_renewal_goes_beyond_the_end_of_life() -> None:
    tokens = made(wanted(lifetime_ms=350))
    assert renew(tokens, "t", ALICE, -1, LIFETIMES, NOW_MS + 299).response == NOW_MS + 350
    assert expire(tokens, "t", ALICE, 2**62, NOW_MS).response == NOW_MS + 350


def test_an_end_in_a_while_moves_the_expiry_and_one_at_once_removes_the_token() -> None:
    tokens = made(wanted(), wanted("other"))
    enact(tokens, expire(tokens, "t", ALICE, 50, NOW_MS))
    found = tokens.of("t")
    assert found is not None
    assert found.expires_ms == NOW_MS + 50
    decision = expire(tokens, "t", ALICE, -7, NOW_MS)
    enact(tokens, decision)
    assert decision.response == NOW_MS
    assert list(tokens.by_id) == ["other"]


@pytest.mark.parametrize(
    ("token_id", "principal", "after_ms", "code"),
    [
        (None, ALICE, 0, E.DELEGATION_TOKEN_NOT_FOUND),
        ("gone", ALICE, 0, E.DELEGATION_TOKEN_NOT_FOUND),
        ("t", BOB, 0, E.DELEGATION_TOKEN_OWNER_MISMATCH),  # who has asked for it may not
        ("t", "Group:alice", 0, E.DELEGATION_TOKEN_OWNER_MISMATCH),
        ("t", ALICE, 301, E.DELEGATION_TOKEN_EXPIRED),
    ],
)
def test_a_change_is_refused(token_id: str | None, principal: str, after_ms: int, code: ErrorCode) -> None:
    tokens, now_ms = made(wanted(renewers=(CAROL,))), NOW_MS + after_ms
    assert code_of(lambda: renew(tokens, token_id, principal, -1, LIFETIMES, now_ms)) == code
    assert code_of(lambda: expire(tokens, token_id, principal, 5, now_ms)) == code


def test_a_stranger_hears_of_a_renewal_that_it_is_over_and_of_an_end_that_it_is_not_its_own() -> None:
    tokens, now_ms = made(wanted()), NOW_MS + 301
    assert code_of(lambda: renew(tokens, "t", BOB, -1, LIFETIMES, now_ms)) == E.DELEGATION_TOKEN_EXPIRED
    assert code_of(lambda: expire(tokens, "t", BOB, -1, now_ms)) == E.DELEGATION_TOKEN_OWNER_MISMATCH
    assert code_of(lambda: expire(tokens, "t", BOB, 5, now_ms)) == E.DELEGATION_TOKEN_OWNER_MISMATCH


def test_a_token_that_is_over_is_removed_all_the_same() -> None:
    tokens = made(wanted())
    enact(tokens, expire(tokens, "t", ALICE, -1, NOW_MS + 301))
    assert len(tokens) == 0


def test_a_renewer_may_renew_and_end_it() -> None:
    tokens = made(wanted(renewers=(CAROL,)))
    assert renew(tokens, "t", CAROL, -1, LIFETIMES, NOW_MS).records
    assert expire(tokens, "t", CAROL, -1, NOW_MS).records


@pytest.mark.parametrize(
    "token", [wanted(owner="Group:a"), wanted(renewers=(CAROL, "Group:a")), wanted(owner="None:a")]
)
def test_owners_and_renewers_are_users(token: NewToken) -> None:
    assert code_of(lambda: create(DelegationTokens(), token, LIFETIMES, NOW_MS)) == E.INVALID_PRINCIPAL_TYPE


@pytest.mark.parametrize("role", ["owner", "renewer"])
def test_owners_and_renewers_have_names_of_so_many_characters(role: str) -> None:
    def token(characters: int) -> NewToken:
        name = "User:" + "u" * characters
        return wanted(owner=name) if role == "owner" else wanted(renewers=(CAROL, name))

    assert only(made(token(256)))
    assert code_of(lambda: create(DelegationTokens(), token(257), LIFETIMES, NOW_MS)) == E.INVALID_REQUEST


def test_there_is_a_bound_on_tokens() -> None:
    tokens = made(wanted())
    assert code_of(lambda: create(tokens, wanted("more"), LIFETIMES, NOW_MS, tokens_max=1)) == E.POLICY_VIOLATION


def test_a_sweep_removes_what_is_over_some_at_a_time() -> None:
    tokens = made(*(wanted(name, lifetime_ms=100) for name in "abc"), wanted("stays"))
    assert sweep(tokens, NOW_MS + 100).records == []
    for counted in (2, 1, 0):
        decision = sweep(tokens, NOW_MS + 101, swept_max=2)
        enact(tokens, decision)
        assert decision.response == counted
    assert list(tokens.by_id) == ["stays"]


def test_a_token_concerns_its_owner_who_has_asked_for_it_and_its_renewers() -> None:
    token = only(made(wanted(renewers=(CAROL,))))
    assert all(token.concerns(principal) for principal in (ALICE, BOB, CAROL))
    assert not token.concerns("User:dave")


def test_an_image_of_its_own_records_is_the_same_and_a_copy_goes_its_own_way() -> None:
    tokens = made(wanted(renewers=(CAROL,)), wanted("other"))
    again = DelegationTokens()
    for record in tokens.records():
        again.replay(record)
    copy = tokens.copy()
    assert tokens == again == copy != DelegationTokens()
    enact(copy, expire(copy, "t", ALICE, -1, NOW_MS))
    assert (len(copy), len(tokens), tokens == copy) == (1, 2, False)


def test_a_token_is_not_removed_twice() -> None:
    tokens = made(wanted())
    decision = expire(tokens, "t", ALICE, -1, NOW_MS)
    enact(tokens, decision)
    with pytest.raises(AssertionError, match="there is no delegation token t to take away"):
        enact(tokens, decision)
