"""A callback class in place of Kafka's eight levels: what it says holds, and no fault of it is the broker's."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from functools import wraps

import pytest

from examples.tenant_quota import TenantQuotas
from kavka_broker.core.config.broker import BrokerConfig
from kavka_broker.core.config.definition import ConfigError
from kavka_broker.core.quota.entity import Entity, IpEntity
from kavka_broker.core.quota.rate import SampleWindow
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.quotas.callback import ClientQuotaCallback, Cluster
from kavka_broker.quotas.callback_runner import BOUNDS, CallBounds, QuotaCalls
from kavka_broker.quotas.client_quotas import ClientQuotas, Limits
from kavka_broker.runtime.clock import SystemClock
from kavka_broker.runtime.quota_callback import KEY, load
from tests.support.clocks import StoppedClock
from tests.support.cluster import PROPERTIES
from tests.support.waiting import until

ALICE = Entity("alice")


def on_a_loop(test: Callable[..., Coroutine[object, object, None]]) -> Callable[..., None]:
    """Run a test in a loop of its own."""

    @wraps(test)
    def run(**arguments: object) -> None:
        asyncio.run(test(**arguments))

    return run


@asynccontextmanager
async def called(
    callback: ClientQuotaCallback, limits: Mapping[Entity | IpEntity, float], bounds: CallBounds = BOUNDS
) -> AsyncIterator[ClientQuotas]:
    """Quotas that ask this callback, with producers' limits in the metadata."""
    calls = QuotaCalls(callback, asyncio.get_running_loop(), SystemClock(), bounds)
    quotas = ClientQuotas(SampleWindow(), calls=calls)
    quotas.update({"producer_byte_rate": dict(limits)})
    calls.start()
    try:
        yield quotas
    finally:
        await calls.stop()


async def asked(quotas: ClientQuotas, user: str, client_id: str) -> None:
    """Have the callback answer for this client."""
    quotas.produce(user, client_id, 0, 0)
    calls = quotas.calls
    assert calls is not None
    await until(lambda: not calls.waiting)


class Fixed(ClientQuotaCallback):
    """Everybody shares one limit, which may change."""

    def __init__(self, limit: float | None = 1000.0) -> None:
        self.limit = limit
        self.has_changed = False
        self.is_closed = False
        self.cluster: Cluster | None = None

    def quota_metric_tags(self, quota_type: str, user: str, client_id: str) -> Mapping[str, str]:
        return {"all": "one"}

    def quota_limit(self, quota_type: str, tags: Mapping[str, str]) -> float | None:
        assert tags == {"all": "one"}
        return self.limit

    def quota_reset_required(self, quota_type: str) -> bool:
        changed, self.has_changed = self.has_changed, False
        return changed

    def update_cluster_metadata(self, cluster: Cluster) -> bool:
        self.cluster = cluster
        return True

    def close(self) -> None:
        self.is_closed = True


class Broken(Fixed):
    """Raises while it is told to."""

    is_broken = True

    def quota_limit(self, quota_type: str, tags: Mapping[str, str]) -> float | None:
        if self.is_broken:
            raise RuntimeError("no answer today")
        return self.limit


class Odd(Fixed):
    """Returns what is no limit."""

    def quota_limit(self, quota_type: str, tags: Mapping[str, str]) -> float | None:
        return float("nan")


class Huge(Fixed):
    """Returns a number that is none of a limit's."""

    def quota_limit(self, quota_type: str, tags: Mapping[str, str]) -> float | None:
        return 10**400


class Untyped(Fixed):
    """Returns tags that are no texts."""

    def quota_metric_tags(self, quota_type: str, user: str, client_id: str) -> Mapping[str, str]:
        return {"user": [user], 7: client_id}  # type: ignore[dict-item]


class Stuck(Fixed):
    """Never returns, until somebody lets it."""

    def __init__(self) -> None:
        super().__init__()
        self.go_on = threading.Event()

    def quota_metric_tags(self, quota_type: str, user: str, client_id: str) -> Mapping[str, str]:
        self.go_on.wait()
        return {}


@on_a_loop
async def test_a_tenant_has_one_budget_over_its_users() -> None:
    async with called(TenantQuotas(), {Entity("acme"): 1000.0, Entity("apex"): 1000.0}) as quotas:
        for user in ("acme.etl", "acme.web", "apex.etl", "loner"):
            await asked(quotas, user, "any")
        assert quotas.produce("acme.etl", "any", 6000, 0) == 0
        assert quotas.produce("acme.web", "any", 6000, 0) == 2000
        assert quotas.produce("apex.etl", "any", 6000, 0) == 0
        assert quotas.produce("loner", "any", 10**9, 0) == 0


@on_a_loop
async def test_a_callback_decides_time_and_mutations_as_well() -> None:
    """As in Apache Kafka: a tenant has one budget of each kind over all of its users."""
    clock = StoppedClock()
    async with called(TenantQuotas(), {}) as quotas:
        limits: Limits = {
            "request_percentage": {Entity("acme"): 10.0},
            "controller_mutation_rate": {Entity("acme"): 2.0},
        }
        quotas.update(limits)
        calls = quotas.calls
        assert calls is not None
        for user in ("acme.etl", "acme.web", "loner"):
            quotas.requests.sensor_of(user, "any", 0)
            quotas.mutations.begin(user, "any", clock, strict=False)
        await until(lambda: not calls.waiting)
        etl, web, loner = (quotas.requests.sensor_of(user, "any", 0) for user in ("acme.etl", "acme.web", "loner"))
        assert etl is web
        assert (etl.limit, loner.limit) == (10.0, None)
        first = quotas.mutations.begin("acme.etl", "any", clock, strict=True)
        first.record(100)
        second = quotas.mutations.begin("acme.web", "any", clock, strict=True)
        with pytest.raises(BrokerError) as caught:
            second.record(1)
        assert caught.value.code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
        quotas.mutations.begin("loner", "any", clock, strict=True).record(1_000)


@on_a_loop
async def test_a_changed_or_removed_limit_is_asked_for_again() -> None:
    async with called(TenantQuotas(), {Entity("acme"): 1000.0}) as quotas:
        await asked(quotas, "acme.etl", "any")
        assert quotas.produce("acme.etl", "any", 12_000, 0) == 2000
        quotas.update({"producer_byte_rate": {Entity("acme"): 500.0}})
        await asked(quotas, "acme.etl", "any")
        assert quotas.produce("acme.etl", "any", 0, 0) == 14_000
        quotas.update({})
        await asked(quotas, "acme.etl", "any")
        assert quotas.produce("acme.etl", "any", 10**6, 0) == 0


@on_a_loop
async def test_until_it_answers_kafkas_own_rule_holds() -> None:
    stuck = Stuck()
    async with called(stuck, {ALICE: 1000.0}) as quotas:
        assert quotas.produce("alice", "etl", 12_000, 0) == 2000
        calls = quotas.calls
        assert calls is not None
        assert calls.waiting == 1
        stuck.go_on.set()
        await until(lambda: not calls.waiting)
        assert quotas.produce("alice", "etl", 10**9, 0) == 0


BROKEN = (Broken(), Odd(), Huge(), Untyped())


@pytest.mark.parametrize("broken", BROKEN, ids=[type(broken).__name__ for broken in BROKEN])
@on_a_loop
async def test_a_failure_is_counted_and_leaves_kafkas_own_rule(broken: Fixed) -> None:
    async with called(broken, {ALICE: 1000.0}) as quotas:
        await asked(quotas, "alice", "etl")
        assert quotas.calls is not None
        assert quotas.calls.failures.total == 1
        assert quotas.produce("alice", "etl", 12_000, 0) == 2000


@on_a_loop
async def test_a_failed_question_is_put_again() -> None:
    broken = Broken(limit=None)
    async with called(broken, {ALICE: 1000.0}, CallBounds(retry_seconds=0.0)) as quotas:
        await asked(quotas, "alice", "etl")
        broken.is_broken = False
        await until(lambda: quotas.produce("alice", "etl", 100_000, 0) == 0)


@on_a_loop
async def test_an_answer_holds_while_later_questions_fail() -> None:
    broken = Broken()
    broken.is_broken = False
    async with called(broken, {}) as quotas:
        await asked(quotas, "alice", "etl")
        broken.is_broken = True
        quotas.update({"producer_byte_rate": {ALICE: 10**9}})
        await asked(quotas, "alice", "etl")
        assert quotas.produce("alice", "etl", 12_000, 0) == 2000


@pytest.mark.parametrize("by_cluster", [False, True])
@on_a_loop
async def test_limits_that_change_by_themselves_are_asked_for_again(*, by_cluster: bool) -> None:
    fixed = Fixed()
    async with called(fixed, {}, CallBounds(reset_asked_ms=0)) as quotas:
        await asked(quotas, "alice", "etl")
        assert quotas.produce("alice", "etl", 12_000, 0) == 2000
        fixed.limit = None
        if by_cluster:
            assert quotas.calls is not None
            quotas.calls.cluster_changed(Cluster(1, (1,), {"t": (1,)}))
        else:
            fixed.has_changed = True
        await until(lambda: quotas.produce("alice", "etl", 12_000, 0) == 0)
        assert fixed.cluster == (Cluster(1, (1,), {"t": (1,)}) if by_cluster else None)


@on_a_loop
async def test_clients_beyond_the_bound_are_under_kafkas_own_rule() -> None:
    async with called(Fixed(limit=None), {ALICE: 1000.0}, CallBounds(answers_max=2)) as quotas:
        for client_id in ("a", "b"):
            await asked(quotas, "alice", client_id)
        await asked(quotas, "alice", "c")
        assert quotas.produce("alice", "a", 12_000, 0) == 0
        assert quotas.produce("alice", "c", 12_000, 0) == 2000


@on_a_loop
async def test_the_callback_is_closed_when_the_broker_stops() -> None:
    fixed = Fixed()
    async with called(fixed, {}):
        pass
    assert fixed.is_closed


def configured(name: str) -> BrokerConfig:
    return BrokerConfig.parse({**PROPERTIES, KEY: name})


def test_a_class_is_found_by_its_module_and_configured() -> None:
    assert load(BrokerConfig.parse(PROPERTIES)) is None
    assert isinstance(load(configured("examples.tenant_quota:TenantQuotas")), TenantQuotas)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("com.example.Callback", "no entry point com.example.Callback"),
        ("nowhere.at.all:Tenant", "ModuleNotFoundError"),
        ("examples.tenant_quota:Nobody", "AttributeError"),
        ("builtins:dict", "not derived from"),
        ("tests.unit.quota.test_callback:Stuck.nothing", "AttributeError"),
    ],
)
def test_a_class_that_cannot_be_used_stops_the_start(name: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words) as refused:
        load(configured(name))
    assert refused.value.name == KEY
