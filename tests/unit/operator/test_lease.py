"""The Lease: one holds it, by nobody else's clock; whoever cannot renew it stops in time."""

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest

from kavka_kubernetes.platform import lease as lease_module
from kavka_kubernetes.platform.api import ApiError
from kavka_kubernetes.platform.lease import (
    DURATION_SECONDS,
    TRY_SECONDS,
    Glance,
    Lease,
    glanced,
    may_take,
    taken,
)
from kavka_kubernetes.process import LANES_SECONDS_MAX, LeaseLostError, lead
from tests.sim.loop import SimLoop
from tests.support.waiting import pass_seconds

AT = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
OTHERS = {"holderIdentity": "other", "leaseDurationSeconds": DURATION_SECONDS, "leaseTransitions": 3}


def test_a_lease_is_taken_when_it_is_nobodys_ones_own_or_has_not_changed_for_its_duration() -> None:
    seen = glanced(None, OTHERS, 100.0)
    assert glanced(seen, dict(OTHERS), 110.0) == seen, "it has not changed since"
    assert [may_take(seen, "me", now) for now in (100.0, 114.9, 115.0)] == [False, False, True]
    assert glanced(seen, {**OTHERS, "renewTime": "later"}, 110.0).since == 110.0
    assert may_take(seen, "other", 100.0)
    assert may_take(Glance({"holderIdentity": ""}, 100.0), "me", 100.0)
    assert may_take(Glance({}, 100.0), "me", 100.0)


def test_taking_over_is_counted_and_renewing_is_not() -> None:
    mine = taken(OTHERS, "me", AT)
    assert (mine["holderIdentity"], mine["leaseTransitions"]) == ("me", 4)
    again = taken(mine, "me", AT.replace(minute=1))
    assert (again["acquireTime"], again["leaseTransitions"]) == (mine["acquireTime"], 4)
    assert again["renewTime"] != mine["renewTime"]


class Leases:
    """An API server's Lease; `is_away` makes it answer nobody."""

    def __init__(self) -> None:
        self.known: dict[str, Any] | None = None
        self.is_away = False
        self.version = 0

    async def lease(self, namespace: str, name: str) -> dict[str, Any]:
        if self.is_away:
            raise ApiError("away")
        if self.known is None:
            raise ApiError("no such lease", 404)
        return self.known

    async def put_lease(self, namespace: str, name: str, lease: Mapping[str, Any]) -> dict[str, Any]:
        if self.is_away:
            raise ApiError("away")
        named = lease.get("metadata", {}).get("resourceVersion")
        if named != (self.known and self.known["metadata"]["resourceVersion"]):
            raise ApiError("changed meanwhile", 409)
        self.version += 1
        self.known = {**lease, "metadata": {"resourceVersion": str(self.version)}}
        return self.known


def claim(leases: Leases, identity: str) -> Lease:
    loop = asyncio.get_running_loop()
    return Lease(leases, "default", "kavka-operator", identity, loop.time)  # type: ignore[arg-type]


def play(scenario: Any) -> None:
    """Run a scenario in simulated time."""
    loop = SimLoop(1)
    try:
        loop.run_until_complete(scenario)
    finally:
        loop.close()


def test_of_two_that_want_it_one_holds_it_and_the_other_after_it_is_given_back() -> None:
    async def scenario() -> None:
        leases, done = Leases(), asyncio.Event()
        acted: list[str] = []

        async def work(identity: str) -> None:
            acted.append(identity)
            await done.wait()

        both = [asyncio.create_task(lead(claim(leases, name), partial(work, name))) for name in ("a", "b")]
        await pass_seconds(60)
        assert len(acted) == 1
        done.set()
        await asyncio.gather(*both)
        assert sorted(acted) == ["a", "b"]
        assert leases.known is not None
        assert leases.known["spec"]["holderIdentity"] == ""

    play(scenario())


def test_who_cannot_renew_stops_before_another_may_begin() -> None:
    async def scenario() -> None:
        leases, loop = Leases(), asyncio.get_running_loop()
        stopped: list[float] = []

        async def work() -> None:
            try:
                await pass_seconds(1000)
            finally:
                stopped.append(loop.time())

        leading = asyncio.create_task(lead(claim(leases, "a"), work))
        await pass_seconds(5)
        leases.is_away, renewed = True, loop.time()
        with pytest.raises(LeaseLostError):
            await leading
        assert stopped[0] - renewed < DURATION_SECONDS

    play(scenario())


def test_whatever_ends_the_renewing_ends_the_work() -> None:
    async def scenario() -> None:
        leases = Leases()
        leading = asyncio.create_task(lead(claim(leases, "a"), partial(asyncio.sleep, 1000)))
        await pass_seconds(5)
        leases.known = {"spec": None, "metadata": None}  # no API server answers so: a fault in our own code
        await pass_seconds(DURATION_SECONDS)
        assert leading.done()
        with pytest.raises(LeaseLostError):
            await leading

    play(scenario())


def test_a_fault_of_the_work_is_raised_and_the_lease_runs_out(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async def fail() -> None:
            raise RuntimeError("no such thing")

        leases = Leases()
        with pytest.raises(RuntimeError, match="no such thing"):
            await lead(claim(leases, "a"), fail)
        begun = asyncio.get_running_loop().time()
        await claim(leases, "b").acquire()
        assert asyncio.get_running_loop().time() - begun >= DURATION_SECONDS

    monkeypatch.setattr(lease_module, "TRY_SECONDS", 1.0)
    play(scenario())


class Slow(Leases):
    """An API server whose answers get lost: what is written stands, and who wrote it waits for nothing."""

    is_mute = False

    async def put_lease(self, namespace: str, name: str, lease: Mapping[str, Any]) -> dict[str, Any]:
        if self.is_mute:
            await pass_seconds(1000)
        return await super().put_lease(namespace, name, lease)


def test_who_hears_nothing_stops_before_another_may_begin_however_its_tries_fall() -> None:
    async def scenario(mute_at: float) -> None:
        leases, loop = Slow(), asyncio.get_running_loop()
        ended: list[float] = []

        async def work() -> None:
            try:
                await pass_seconds(1000)
            finally:
                await pass_seconds(LANES_SECONDS_MAX)  # what is under way may go on for so long
                ended.append(loop.time())

        leading = asyncio.create_task(lead(claim(leases, "a"), work))
        await pass_seconds(mute_at)
        leases.is_mute, version = True, leases.version
        with pytest.raises(LeaseLostError):
            await leading
        assert leases.version == version, "nothing was written since"
        assert ended[0] - mute_at + TRY_SECONDS < DURATION_SECONDS

    for tenths in range(20):
        play(scenario(5 + tenths / 10))
