"""A budget of the cluster, divided among brokers: never more than the budget, and where the traffic is."""

from hypothesis import given
from hypothesis import strategies as st

from kavka_broker.core.quota.budget import KEPT, divide, step

BUDGETS = st.integers(min_value=1, max_value=2**53)
DEMANDS = st.dictionaries(
    st.integers(0, 50), st.floats(min_value=0, max_value=2**60) | st.sampled_from([0.0, 1.0]), min_size=1, max_size=12
)


@given(BUDGETS, DEMANDS)
def test_shares_are_whole_and_never_more_than_the_budget(budget: int, demand: dict[int, float]) -> None:
    shares = divide(budget, demand)
    assert shares.keys() == demand.keys()
    assert all(share >= 0 and share == int(share) for share in shares.values())
    assert sum(shares.values()) <= budget


@given(BUDGETS, DEMANDS)
def test_nobody_is_short_while_another_has_more_than_it_asks_for(budget: int, demand: dict[int, float]) -> None:
    kept, shares = int(budget * KEPT) // len(demand), divide(budget, demand)
    short = [broker for broker, asked in demand.items() if shares[broker] + 1 + asked * 1e-9 < asked]
    if sum(demand.values()) == 0 or not short:
        return
    most = max(shares[broker] for broker in demand if broker not in short) if len(short) < len(demand) else 0
    assert most <= min(shares[broker] for broker in short) + 1 + kept + budget * 1e-9
    tolerated = len(demand) + budget * 1e-9
    assert sum(shares.values()) >= budget - tolerated - kept * len(demand), "what somebody asks for is not left over"


@given(st.integers(min_value=1000, max_value=2**53), st.integers(1, 12))
def test_all_load_on_one_broker_reaches_nearly_the_whole_budget(budget: int, brokers: int) -> None:
    demand = dict.fromkeys(range(brokers), 0.0) | {0: budget * 3.0}
    assert divide(budget, demand)[0] >= budget * 0.95


@given(BUDGETS, DEMANDS, DEMANDS)
def test_on_the_way_no_moment_allows_more_than_the_budget(
    budget: int, before: dict[int, float], after: dict[int, float]
) -> None:
    shares, wanted = divide(budget, before), divide(budget, after)
    for _ in range(3):
        following = step(budget, shares, wanted)
        # A broker may still have its old share while another has its new one.
        assert sum(max(shares.get(one, 0), following.get(one, 0)) for one in {**shares, **following}) <= budget
        shares = following
    assert shares == step(budget, shares, wanted), "it comes to rest"
    assert all(abs(shares[broker] - wanted[broker]) <= max(budget * 0.02, 0) for broker in wanted)
